"""Turns of the Messages API as OpenAI chat messages: the other way round of `chat_messages`.

Thinking is left out. What chat messages cannot hold becomes text. Calls and results of `turns` are pairs already
(`core.repair`); their ids stay, but for long ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from compaction.core.block_text import block_text
from compaction.core.fields import SIGNED
from compaction.core.jsonbytes import Json
from compaction.core.messages import Block, Content
from compaction.core.turns import Turn, blocks_of
from compaction.formats.chat_calls import call_arguments
from compaction.formats.chat_content import IMAGE_TYPES
from compaction.formats.identity import short_digest

ChatMessage = dict[str, Json]

# "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40", says OpenAI.
# Ids of the Messages API have about 30 characters, those of some servers 46.
MAX_CALL_ID_CHARS = 40
_SHORT = "call_"  # how OpenAI's own ids begin


def chat_messages(turns: Sequence[Turn], system: Json = None) -> list[ChatMessage]:
    """The conversation for chat completions, the system prompt first. `turns` are valid (`core.wire.api_messages`)."""
    messages: list[ChatMessage] = []
    said = _said(system)
    if said:
        messages.append({"role": "system", "content": said})
    ids = _CallIds(turns)
    for turn in turns:
        blocks = [block for block in blocks_of(turn["content"]) if block["type"] not in SIGNED]
        waits = ids.waits and turn is turns[-1]
        messages += _answer(blocks, ids) if turn["role"] == "assistant" else _asked(blocks, ids, waits=waits)
    return messages


def chat_tools(tools: Json) -> list[dict[str, Json]]:
    """Tool definitions as functions, the other way round of `chat_messages.tools_of`; without the API's own tools."""
    listed = tools if isinstance(tools, list) else []
    return [_function(tool) for tool in listed if isinstance(tool, dict) and _is_function(tool)]


def _is_function(tool: dict[str, Json]) -> bool:
    return isinstance(tool.get("name"), str) and isinstance(tool.get("input_schema"), dict)


def _function(tool: dict[str, Json]) -> dict[str, Json]:
    told = {"name": tool["name"], "description": tool.get("description"), "parameters": tool["input_schema"]}
    return {"type": "function", "function": {key: value for key, value in told.items() if value is not None}}


class _CallIds:
    """The ids that calls and results are written with. An open call keeps its own: its result will come under it."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        blocks = [block for turn in turns for block in blocks_of(turn["content"])]
        self._answered = {block.get("tool_use_id") for block in blocks if block["type"] == "tool_result"}
        called = [block.get("id") for block in blocks if block["type"] == "tool_use"]
        self.waits = any(call not in self._answered for call in called)  # calls of the last round alone can be open

    def written(self, stored: Json) -> Json:
        """The id itself, or one made of it where it is too long: the same for the call and its result."""
        if not isinstance(stored, str) or len(stored) <= MAX_CALL_ID_CHARS or stored not in self._answered:
            return stored
        return (_SHORT + short_digest([stored.encode()]))[:MAX_CALL_ID_CHARS]  # 140 bits: never equal by chance


def _said(system: Json) -> str:
    if isinstance(system, str):
        return system
    texts = [block.get("text") for block in system or () if isinstance(block, dict)]
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def _answer(blocks: Sequence[Block], ids: _CallIds) -> list[ChatMessage]:
    """An assistant turn: one message with its texts and its calls."""
    calls = [_call(block, ids) for block in blocks if block["type"] == "tool_use"]
    texts = [part for block in blocks if block["type"] != "tool_use" for part in _text_parts(block)]
    if not calls and not texts:
        return []
    message: ChatMessage = {"role": "assistant", "content": _compact(texts) if texts else None}
    return [message | ({"tool_calls": calls} if calls else {})]


def _call(block: Block, ids: _CallIds) -> dict[str, Json]:
    function = {"name": block.get("name"), "arguments": call_arguments(block.get("input"))}
    return {"id": ids.written(block.get("id")), "type": "function", "function": function}


def _asked(blocks: Sequence[Block], ids: _CallIds, *, waits: bool) -> Iterator[ChatMessage]:
    """A user turn: a tool message for each result, then what the user says and the pictures of the results.

    While another call `waits` nobody may speak, so pictures of results are told in words.
    """
    parts: list[Block] = []
    for block in blocks:
        if block["type"] == "tool_result":
            texts, pictures = _result_parts(block.get("content"), _text_parts if waits else _parts)
            content = _compact(texts) if texts else ""
            yield {"role": "tool", "tool_call_id": ids.written(block.get("tool_use_id")), "content": content}
            parts += pictures  # a tool message holds text alone
        else:
            parts += _parts(block)
    if parts:
        yield {"role": "user", "content": _compact(parts)}


def _result_parts(content: Content | None, parts_of: Callable[[Block], list[Block]]) -> tuple[list[Block], list[Block]]:
    parts = [part for block in blocks_of(content or []) for part in parts_of(block)]
    texts = [part for part in parts if part["type"] == "text"]
    return texts, [part for part in parts if part["type"] != "text"]


def _parts(block: Block) -> list[Block]:
    """The block as a part; none where it says nothing."""
    url = _picture_url(block.get("source")) if block["type"] == "image" else None
    return _text_parts(block) if url is None else [{"type": "image_url", "image_url": {"url": url}}]


def _picture_url(source: Json) -> str | None:
    """The address of a picture that a chat takes, its data as an address too."""
    match source:
        case {"type": "url", "url": str(url)} if url.startswith(("http://", "https://")):
            return url
        case {"type": "base64", "media_type": str(media), "data": str(data)} if media in IMAGE_TYPES:
            return f"data:{media};base64,{data}"
    return None


def _text_parts(block: Block) -> list[Block]:
    text = block["text"] if block["type"] == "text" else block_text(block)
    return [{"type": "text", "text": text}] if text.strip() else []


def _compact(parts: Sequence[Block]) -> Json:
    """A single text as a string, which every server takes."""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return list(parts)
