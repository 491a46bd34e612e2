"""The Messages API's rules for a message list, written down once more and independently of the code that obeys them.

`broken_rules(messages)` names every rule that a list breaks; an empty list of names is a valid request. The grounds are
the API's documented request types and its error texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

MAX_CACHE_MARKS = 4
TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+")
SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
MARKED = {"type", "cache_control"}
ALLOWED: dict[str, set[str]] = {
    "text": MARKED | {"text", "citations"},
    "image": MARKED | {"source", "transformations"},
    "document": MARKED | {"source", "title", "context", "citations"},
    "search_result": MARKED | {"source", "title", "content", "citations"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
    "tool_use": MARKED | {"id", "name", "input", "caller", "toolset_name"},
    "tool_result": MARKED | {"tool_use_id", "content", "is_error", "toolset_name"},
    "server_tool_use": MARKED | {"id", "name", "input", "caller"},
    "mcp_tool_use": MARKED | {"id", "name", "input", "server_name"},
    "mcp_tool_result": MARKED | {"tool_use_id", "content", "is_error"},
    "web_search_tool_result": MARKED | {"tool_use_id", "content", "caller"},
    "web_fetch_tool_result": MARKED | {"tool_use_id", "content", "caller"},
    "code_execution_tool_result": MARKED | {"tool_use_id", "content"},
    "compaction": MARKED | {"content", "encrypted_content", "signature", "tool_changes"},
}
SERVER_CALLS = {"server_tool_use", "mcp_tool_use"}
THINKING = {"thinking", "redacted_thinking"}


def broken_rules(messages: list[dict[str, Any]]) -> list[str]:
    """The names of the rules that `messages` break as the messages of one request; [] when they are fine."""
    if not messages:
        return ["there are no messages"]
    found = [name for message in messages for name in _message_rules(message)]
    turns = _turns(messages)
    if turns[0][0] != "user" and turns[0][1][0].get("type") != "compaction":
        found.append("the first message is not the user's")
    if turns[-1][0] != "user":
        found.append("the last message is not the user's")
    found += _pair_rules(turns) + _server_rules(turns)
    if sum("cache_control" in block for _, blocks in turns for block in _with_inner(blocks)) > MAX_CACHE_MARKS:
        found.append("there are more than four cache marks")
    return found


def open_calls(messages: list[dict[str, Any]]) -> list[str]:
    """The ids of the last assistant turn's calls that no result follows yet."""
    turns = _turns(messages)
    asked: list[str] = []
    for role, blocks in turns:
        if role == "assistant":
            asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
        else:
            answered = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
            asked = [ident for ident in asked if ident not in answered]
    return asked


def _turns(messages: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """As the API sees them: neighbours of one role are one turn."""
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    return turns


def _message_rules(message: dict[str, Any]) -> Iterator[str]:
    if set(message) != {"role", "content"}:
        yield "a message has other members than role and content"
    if message["role"] not in {"user", "assistant"}:
        yield "a role is neither user nor assistant"
    if not message["content"]:
        yield "a message is empty"
    if isinstance(message["content"], str) and not message["content"].strip():
        yield "a message is blank"
    yield from _value_rules(message["content"])
    if not isinstance(message["content"], str):
        for block in message["content"]:
            yield from _block_rules(block, message["role"])


def _value_rules(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    nodes = [value]
    while nodes:
        node = nodes.pop()
        if isinstance(node, dict):
            nodes += [*node, *node.values()]
        elif isinstance(node, list):
            nodes += node
        elif isinstance(node, float) and not math.isfinite(node):
            yield "a number is not finite"
        elif isinstance(node, str) and "\0" in node:
            yield "a string holds NUL"
        elif isinstance(node, str) and any("\ud800" <= character <= "\udfff" for character in node):
            yield "a string holds half a character"


def _block_rules(block: dict[str, Any], role: str, *, inside: bool = False) -> Iterator[str]:
    kind = block["type"]
    if not set(block) <= ALLOWED.get(kind, set(block)):
        yield f"{kind} has a field that requests do not have"
    if kind in THINKING:
        yield "thinking was kept, though something before it may have changed"
    if kind == "compaction" and block.get("content") == "":
        yield "a compaction block is empty"
    if kind.endswith("tool_result"):
        own_role = "user" if kind == "tool_result" else "assistant"
        if role != own_role or inside:
            yield "a result stands where none may"
    check = {"text": _text_rules, "image": _media_rules, "document": _media_rules, "tool_result": _result_rules}.get(
        kind
    )
    if kind == "tool_use" or kind in SERVER_CALLS:
        check = _call_rules
    if check is not None:
        yield from check(block, role)


def _media_rules(block: dict[str, Any], role: str) -> Iterator[str]:
    if role == "assistant":
        yield "the assistant says an image or document"
    if not isinstance(block.get("source"), dict):
        yield "an image or document has no source"


def _text_rules(block: dict[str, Any], role: str) -> Iterator[str]:
    if not isinstance(block.get("text"), str) or not block["text"].strip():
        yield "a text block is blank"
    if role == "user" and block.get("citations"):
        yield "the user's text has citations"
    if any("file_id" in citation for citation in block.get("citations") or ()):
        yield "a citation has a field that requests do not have"


def _call_rules(block: dict[str, Any], role: str) -> Iterator[str]:
    pattern = SERVER_ID if block["type"] == "server_tool_use" else TOOL_ID
    if role != "assistant":
        yield "the user calls a tool"
    if not isinstance(block.get("id"), str) or not pattern.fullmatch(block["id"]):
        yield "a call's id does not match its pattern"
    if not isinstance(block.get("name"), str) or not block["name"].strip():
        yield "a call has no name"
    if not isinstance(block.get("input"), dict):
        yield "a call's input is no object"


def _result_rules(block: dict[str, Any], role: str) -> Iterator[str]:
    del role
    content = block.get("content", "nothing")
    if not isinstance(content, str | list):
        yield "a result's content is neither string nor list"
    if block.get("is_error") and not block.get("content"):
        yield "an error result says nothing"
    if not isinstance(block.get("is_error", False), bool):
        yield "is_error is not true or false"
    if isinstance(content, list):
        for inner in content:
            if not isinstance(inner, dict) or not isinstance(inner.get("type"), str):
                yield "a result holds something that is no block"
            else:
                yield from _block_rules(inner, "user", inside=True)


def _pair_rules(turns: list[tuple[str, list[dict[str, Any]]]]) -> list[str]:
    found: list[str] = []
    used: set[str] = set()
    asked: list[str] = []
    for role, blocks in turns:
        if role == "assistant":
            asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
            found += ["an id is used for two calls" for ident in asked if ident in used or asked.count(ident) > 1]
            used |= set(asked)
            continue
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(asked):
            found.append("calls and results of neighbouring turns are not one to one")
        if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
            found.append("a result stands behind other content")
        asked = []
    return found + ["the last calls are open" for _ in asked]


def _server_rules(turns: list[tuple[str, list[dict[str, Any]]]]) -> list[str]:
    found: list[str] = []
    waiting: set[str] = set()
    used: set[str] = set()
    for _, blocks in (turn for turn in turns if turn[0] == "assistant"):
        makers: set[str] = set()
        for block in blocks:
            maker = (block.get("caller") or {}).get("tool_id")
            if maker is not None and maker not in waiting:
                found.append("a caller names no open server call")
            if block["type"] == "tool_use" and maker is not None:
                makers.add(maker)
            if block["type"] in SERVER_CALLS:
                found += ["an id is used for two server calls" for _ in {block["id"]} & used]
                used.add(block["id"])
                waiting.add(block["id"])
            elif block["type"].endswith("tool_result") and block["type"] != "tool_result":
                if block["tool_use_id"] not in waiting:
                    found.append("a server result has no call before it")
                waiting.discard(block["tool_use_id"])
        if waiting - makers:
            found.append("a server call has no result")
        waiting &= makers
    return found


def _with_inner(blocks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for block in blocks:
        yield block
        if isinstance(block.get("content"), list):
            yield from (inner for inner in block["content"] if isinstance(inner, dict))
