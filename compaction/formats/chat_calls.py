"""Tool calls of OpenAI chat messages: their inputs, and ids that are valid and used once in the whole conversation.

Depends on what stood before alone, so a conversation that has grown gives its old calls the same ids.
"""

from __future__ import annotations

from collections import deque

from compaction.core import jsonbytes
from compaction.core.fields import TOOL_ID
from compaction.core.jsonbytes import Json
from compaction.core.messages import Block, Content
from compaction.core.tool_ids import ToolIds

RAW_ARGUMENTS = "_raw_arguments"  # the one member of an input whose arguments were no JSON object: their text
UNNAMED = "call"  # the id of a call that has none; made unique like any other


class ChatCalls:
    """The calls so far; a result belongs to the newest round's call of its id, of equal ids to the first open one."""

    def __init__(self) -> None:
        self._ids = ToolIds(())
        self._open: dict[str, deque[str]] = {}

    def calls(self, message: dict[str, Json]) -> list[Block]:
        """The tool_use blocks for an assistant message's tool_calls, or for the function_call of older versions."""
        called = message.get("tool_calls") or []
        function: dict[str, Json] | None = message.get("function_call")
        if not called and function is None:
            return []
        self._open = {}
        if called:
            return [self._call(call, _stored_id(call)) for call in called]
        return [self._call({"function": function}, _function_key((function or {}).get("name")))]

    def result(self, message: dict[str, Json], content: Content) -> Block:
        """The tool_result block for a tool or function message. One without a call keeps its id, if it can be one."""
        if message["role"] == "function":
            stored = _function_key(message.get("name"))
        else:
            stored = _stored_id({"id": message.get("tool_call_id")})
        waiting = self._open.get(stored)
        sent = waiting.popleft() if waiting else stored
        if not TOOL_ID.fullmatch(sent):
            sent = UNNAMED
        return {"type": "tool_result", "tool_use_id": sent, "content": content}

    def _call(self, call: Json, stored: str) -> Block:
        sent = self._ids.claim(stored)
        self._open.setdefault(stored, deque()).append(sent)
        function = call.get("function") or call.get("custom") or {}
        arguments = function.get("arguments", function.get("input"))
        return {"type": "tool_use", "id": sent, "name": function.get("name") or "", "input": call_input(arguments)}


def call_input(arguments: Json) -> dict[str, Json]:
    """A call's input: the object in `arguments`, {} for none, else {RAW_ARGUMENTS: the text as it stands}."""
    if isinstance(arguments, dict):
        return arguments
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    if not isinstance(arguments, str):
        return {RAW_ARGUMENTS: jsonbytes.encode(arguments).decode("utf-8", "replace")}
    try:
        value = jsonbytes.decode(arguments)
    except ValueError:
        return {RAW_ARGUMENTS: arguments}
    return value if isinstance(value, dict) else {RAW_ARGUMENTS: arguments}


def call_arguments(given: Json) -> str:
    """The arguments for a call's input: the other way round."""
    raw = given.get(RAW_ARGUMENTS) if isinstance(given, dict) and len(given) == 1 else None
    if isinstance(raw, str):
        return raw
    return jsonbytes.encode(given).decode("utf-8", "replace")


def _stored_id(call: dict[str, Json]) -> str:
    given = call.get("id")
    return given if isinstance(given, str) and given else UNNAMED


def _function_key(name: Json) -> str:
    return f"{UNNAMED}_{name}" if isinstance(name, str) and name else UNNAMED
