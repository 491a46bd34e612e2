"""Which format a transcript file has, told by its first objects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import BinaryIO, Literal

from compaction.core.jsonbytes import Json
from compaction.errors import InvalidRequest
from compaction.formats import anthropic_messages, claude_code, openai_chat
from compaction.formats.chat_content import PART_TYPES
from compaction.formats.document import document_in, is_conversation, several_conversations
from compaction.formats.objects import ObjectReader
from compaction.formats.plain import decode_object
from compaction.formats.rows import ROW_START

Format = Literal["claude_code", "anthropic_messages", "openai_chat"]

PROBED_OBJECTS = 200  # a log can begin with a hundred snapshots; the first message tells
KNOWN = (claude_code.FORMAT, anthropic_messages.FORMAT, openai_chat.FORMAT)
_CLAUDE_TYPES = frozenset(
    {"summary", "system", "progress", "attachment", "file-history-snapshot", "queue-operation", "pr-link"}
)
_OPENAI_ROLES = frozenset({"tool", "function", "developer"})


def detect(file: BinaryIO) -> str:
    """The format's name, one of KNOWN. Raises InvalidRequest, naming the formats we know, for any other file."""
    document = document_in(file)
    if document is not None:
        found = shapes(map(decode_object, document.messages[:PROBED_OBJECTS])) - {claude_code.FORMAT}
        if found and _has_functions(document.member("tools")):
            return openai_chat.FORMAT
    else:
        head = list(_head(file))
        found = shapes(head)
        if not found and (conversations := sum(map(is_conversation, head))):
            raise several_conversations(conversations)
    for name in (claude_code.FORMAT, openai_chat.FORMAT, anthropic_messages.FORMAT):
        if name in found:
            return name
    raise InvalidRequest(f"The transcript's format is unknown. Known formats: {', '.join(KNOWN)}.")


def detect_listed(messages: Sequence[bytes], tools: Json = None) -> Format:
    """The format of messages that came as a list, with these tool definitions; the Messages API's where none tells.

    Rows of a log are taken for one only when everything that tells is a row of it.
    """
    found = shapes(map(decode_object, messages))
    if found == {claude_code.FORMAT}:
        return "claude_code"
    is_chat = openai_chat.FORMAT in found or (bool(found) and _has_functions(tools))
    return "openai_chat" if is_chat else "anthropic_messages"


def shapes(values: Iterable[dict[str, Json] | None]) -> set[str]:
    """The formats that the objects look like."""
    return {shape for value in values if value is not None and (shape := _shape(value)) is not None}


def _head(file: BinaryIO) -> Iterable[dict[str, Json]]:
    reader = ObjectReader(decode_object, restart=ROW_START)
    return (found.value for found in islice(reader.read(file), PROBED_OBJECTS))


def _has_functions(tools: Json) -> bool:
    """Whether tool definitions are those of chat completions."""
    return isinstance(tools, list) and any(isinstance(tool, dict) and "function" in tool for tool in tools)


def _shape(value: dict[str, Json]) -> Format | None:
    """What one object looks like."""
    if "role" in value:
        return _message_shape(value)
    kind = value.get("type")
    if not isinstance(kind, str):
        return None
    if kind in {"user", "assistant"} and isinstance(value.get("message"), dict):
        return "claude_code"
    return "claude_code" if kind in _CLAUDE_TYPES and _is_row(value) else None


def _is_row(value: dict[str, Json]) -> bool:
    return any(key in value for key in ("uuid", "sessionId", "leafUuid", "snapshot"))


def _message_shape(value: dict[str, Json]) -> Format | None:
    role = value["role"]
    if not isinstance(role, str):
        return None
    if role in _OPENAI_ROLES or "tool_calls" in value or "function_call" in value:
        return "openai_chat"
    if role == "system" and "metadata" not in value:
        return "openai_chat"  # the Messages API has its system prompt beside the messages
    content = value.get("content")
    if role not in {"user", "assistant", "system"} or not isinstance(content, str | list):
        return None
    if isinstance(content, list) and any(isinstance(part, dict) and _is_chat_part(part) for part in content):
        return "openai_chat"
    return "anthropic_messages"


def _is_chat_part(part: dict[str, Json]) -> bool:
    kind = part.get("type")
    return isinstance(kind, str) and kind in PART_TYPES
