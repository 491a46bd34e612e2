"""OpenAI chat messages as messages of ours.

System and developer messages are gathered for the session's system prompt; the tool messages of one round become one
user message; everything else stays one message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compaction.core.jsonbytes import Json
from compaction.core.messages import Block, Content
from compaction.formats.chat_calls import ChatCalls
from compaction.formats.chat_content import block_of, content_of
from compaction.formats.envelopes import join
from compaction.formats.identity import DerivedUuids

SYSTEM_ROLES = frozenset({"system", "developer"})
RESULT_ROLES = frozenset({"tool", "function"})
ROLES = SYSTEM_ROLES | RESULT_ROLES | {"user", "assistant"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message of ours. `earlier_uuids` are those it had while its round was still short of results."""

    uuid: str
    earlier_uuids: tuple[str, ...]
    role: str
    content: Content = field(repr=False)
    line: int
    place: int

    def body(self) -> bytes:
        """The body to store."""
        return join({"uuid": self.uuid, "role": self.role, "content": self.content})


@dataclass(slots=True)
class _Results:
    """The results of a round while they come in."""

    blocks: list[Block]
    uuids: list[str]
    line: int
    place: int


class ChatMessages:
    """Takes the messages of one conversation in order and gives ours, a round's results when they are complete."""

    def __init__(self) -> None:
        self.system: list[str] = []
        self.unusable = 0
        self._calls = ChatCalls()
        self._uuids = DerivedUuids()
        self._results: _Results | None = None

    @property
    def system_prompt(self) -> str | None:
        """What all system and developer messages said, in order."""
        return "\n\n".join(self.system) or None

    def add(self, value: Json, data: bytes, *, line: int, place: int) -> Iterator[ChatMessage]:
        """Takes the next message, `value` as it stands in `data`; one that is none is counted and passed over."""
        if chat_problem(value) is not None:
            self.unusable += 1
            return
        role = value["role"]
        if role in SYSTEM_ROLES:
            self._add_system(value)
        elif role in RESULT_ROLES:
            self._add_result(value, data, line, place)
        else:
            yield from self.end()
            content = self._content(value)
            if content == []:
                self.unusable += 1
                return
            uuid = self._uuids.next(data)
            yield ChatMessage(uuid=uuid, earlier_uuids=(), role=role, content=content, line=line, place=place)

    def end(self) -> Iterator[ChatMessage]:
        """The results that wait for more of their round, at the end of the conversation."""
        held, self._results = self._results, None
        if held is not None:
            yield ChatMessage(
                uuid=held.uuids[-1],
                earlier_uuids=tuple(held.uuids[:-1]),
                role="user",
                content=held.blocks,
                line=held.line,
                place=held.place,
            )

    def _add_system(self, value: dict[str, Json]) -> None:
        content = content_of(value.get("content"))
        texts = [content] if isinstance(content, str) else [block.get("text") for block in content]
        self.system += [text for text in texts if isinstance(text, str) and text.strip()]

    def _add_result(self, value: dict[str, Json], data: bytes, line: int, place: int) -> None:
        content = content_of(value.get("content"))
        block = self._calls.result(value, content or "")
        if self._results is None:
            self._results = _Results([], [], line, place)
        held = self._results
        held.blocks.append(block)
        before = [held.uuids[-1].encode()] if held.uuids else []
        held.uuids.append(self._uuids.next(b"\n".join([*before, data])))

    def _content(self, value: dict[str, Json]) -> Content:
        """The content of a user or assistant message; no blocks when it says nothing."""
        content = content_of(value.get("content"))
        more = self._calls.calls(value) if value["role"] == "assistant" else []
        refusal = value.get("refusal")
        if isinstance(refusal, str) and refusal.strip():
            more.insert(0, block_of(refusal))
        if not more:
            return content
        if isinstance(content, str):
            content = [block_of(content)] if content.strip() else []
        return content + more


def chat_problem(value: Json) -> tuple[str, str] | None:
    """The field that keeps `value` from being a chat message, and what it must be; None when all is well."""
    if not isinstance(value, dict):
        return "message", "must be an object with role and content"
    role = value.get("role")
    if not isinstance(role, str) or role not in ROLES:
        return "role", "must be system, developer, user, assistant, tool or function"
    return _content_problem(role, value.get("content")) or _call_problem(value)


def _content_problem(role: str, content: Json) -> tuple[str, str] | None:
    if content is None and role in SYSTEM_ROLES | {"user"}:
        return "content", "is missing; send a string or a list of parts"
    if not isinstance(content, str | list | None):
        return "content", "must be a string or a list of parts"
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, str) and not (isinstance(part, dict) and isinstance(part.get("type"), str)):
            return f"content[{index}]", "must be an object with a string `type`"
    return None


def _call_problem(value: dict[str, Json]) -> tuple[str, str] | None:
    if not isinstance(value.get("function_call"), dict | None):
        return "function_call", "must be an object with a name and arguments"
    calls = value.get("tool_calls")
    if not isinstance(calls, list | None):
        return "tool_calls", "must be a list"
    for index, call in enumerate(calls or ()):
        if not isinstance(call, dict):
            return f"tool_calls[{index}]", "must be an object with id and function"
        function = call.get("function", call.get("custom"))
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            return f"tool_calls[{index}].function", "must be an object with a name and arguments"
    return None


def tools_of(tools: Json, functions: Json = None) -> Json:
    """Tool definitions as the Messages API has them; those of other kinds than functions are left out."""
    listed = tools if isinstance(tools, list) else []
    older = functions if isinstance(functions, list) else []
    found = [_tool(tool) for tool in listed] + [_tool({"function": function}) for function in older]
    return [tool for tool in found if tool is not None] or None


def _tool(tool: Json) -> dict[str, Json] | None:
    if not isinstance(tool, dict):
        return None
    if "function" not in tool:
        return tool if isinstance(tool.get("name"), str) else None
    function = tool["function"]
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    told = {"name": function["name"], "description": function.get("description"), "input_schema": schema}
    return {key: value for key, value in told.items() if value is not None}
