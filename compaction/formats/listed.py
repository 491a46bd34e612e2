"""Messages that came as a list in a request, in any format, as the bodies to store.

Nothing is passed over: what a file's importer would skip is refused here, by its place in the list.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.errors import InvalidRequest
from compaction.formats import claude_code
from compaction.formats.chat_messages import ChatMessages, chat_problem, tools_of
from compaction.formats.detect import Format, detect_listed

_NEWLINES = bytes.maketrans(b"\r\n", b"  ")  # valid JSON has them between its tokens alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The bodies in order, and what the format says beside them: a system prompt, tools in the Messages API's shape."""

    bodies: tuple[bytes, ...] = field(repr=False)
    system: str | None = field(default=None, repr=False)
    tools: Json = field(default=None, repr=False)


def read(messages: Sequence[bytes], *, format_name: Format | None = None, tools: Json = None) -> Listed:
    """The messages, each the bytes of one JSON value, in their format; None: the format that they look like.

    Messages of the Messages API pass as they are; whether they can be stored is not looked at.
    Raises InvalidRequest, naming the place, for a chat message that is none, and for a log without a conversation.
    """
    name = format_name or detect_listed(messages, tools)
    if name == "openai_chat":
        return _chat(messages, tools)
    if name == "claude_code":
        return Listed(bodies=tuple(_rows(messages)), tools=tools)
    return Listed(bodies=tuple(messages), tools=tools)


def _chat(messages: Sequence[bytes], tools: Json) -> Listed:
    chat, bodies = ChatMessages(), list[bytes]()
    for index, data in enumerate(messages):
        value = _decoded(data)
        if (problem := chat_problem(value)) is not None:
            raise _wrong(index, *problem)
        bodies += (message.body() for message in chat.add(value, data, line=index + 1, place=index))
        if chat.unusable:
            raise _wrong(index, "content", "says nothing; send text, parts or tool calls")
    bodies += (message.body() for message in chat.end())
    return Listed(bodies=tuple(bodies), system=chat.system_prompt, tools=tools_of(tools))


def _rows(messages: Sequence[bytes]) -> Iterator[bytes]:
    """The conversation of a log whose rows came as a list: its active branch, as an import would find it."""
    lines = b"\n".join(row.translate(_NEWLINES) for row in messages)
    try:
        return claude_code.read(io.BytesIO(lines)).bodies()
    except InvalidRequest:
        raise _refused("messages", "hold no conversation: there is no user or assistant row") from None


def _decoded(data: bytes) -> Json:
    try:
        return jsonbytes.decode(data)
    except ValueError:  # nested too deep: the list itself was JSON
        return None


def _wrong(index: int, name: str, problem: str) -> InvalidRequest:
    place = "" if name == "message" else f".{name}"
    return _refused(f"messages[{index}]{place}", problem)


def _refused(path: str, problem: str) -> InvalidRequest:
    return InvalidRequest("The body has wrong fields; see `errors`.", fields=((path, problem),))
