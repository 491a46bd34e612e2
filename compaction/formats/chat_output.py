"""Turns of the Messages API as OpenAI chat messages: the other way round of `chat_messages`.

Thinking is left out. What chat messages cannot hold becomes text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compaction.core.block_text import block_text
from compaction.core.fields import SIGNED
from compaction.core.jsonbytes import Json
from compaction.core.messages import Block, Content
from compaction.core.turns import Turn, blocks_of
from compaction.formats.chat_calls import call_arguments

ChatMessage = dict[str, Json]


def chat_messages(turns: Sequence[Turn], system: Json = None) -> list[ChatMessage]:
    """The conversation for chat completions, the system prompt first. `turns` are valid (`core.wire.api_messages`)."""
    messages: list[ChatMessage] = []
    said = _said(system)
    if said:
        messages.append({"role": "system", "content": said})
    for turn in turns:
        blocks = [block for block in blocks_of(turn["content"]) if block["type"] not in SIGNED]
        messages += _answer(blocks) if turn["role"] == "assistant" else _asked(blocks)
    return messages


def _said(system: Json) -> str:
    if isinstance(system, str):
        return system
    texts = [block.get("text") for block in system or () if isinstance(block, dict)]
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def _answer(blocks: Sequence[Block]) -> list[ChatMessage]:
    """An assistant turn: one message with its texts and its calls."""
    calls = [_call(block) for block in blocks if block["type"] == "tool_use"]
    texts = [_text_part(block) for block in blocks if block["type"] != "tool_use"]
    if not calls and not texts:
        return []
    message: ChatMessage = {"role": "assistant", "content": _compact(texts) if texts else None}
    return [message | ({"tool_calls": calls} if calls else {})]


def _call(block: Block) -> dict[str, Json]:
    function = {"name": block.get("name"), "arguments": call_arguments(block.get("input"))}
    return {"id": block.get("id"), "type": "function", "function": function}


def _asked(blocks: Sequence[Block]) -> Iterator[ChatMessage]:
    """A user turn: a tool message for each result, then what the user says and the pictures of the results."""
    parts: list[Block] = []
    for block in blocks:
        if block["type"] == "tool_result":
            texts, pictures = _result_parts(block.get("content"))
            content = _compact(texts) if texts else ""
            yield {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": content}
            parts += pictures  # a tool message holds text alone
        else:
            parts.append(_part(block))
    if parts:
        yield {"role": "user", "content": _compact(parts)}


def _result_parts(content: Content | None) -> tuple[list[Block], list[Block]]:
    parts = [_part(block) for block in blocks_of(content or [])]
    texts = [part for part in parts if part["type"] == "text"]
    return texts, [part for part in parts if part["type"] != "text"]


def _part(block: Block) -> Block:
    source = block.get("source")
    if block["type"] == "image" and isinstance(source, dict):
        if source.get("type") == "url":
            return {"type": "image_url", "image_url": {"url": source.get("url")}}
        if source.get("type") == "base64":
            url = f"data:{source.get('media_type')};base64,{source.get('data')}"
            return {"type": "image_url", "image_url": {"url": url}}
    return _text_part(block)


def _text_part(block: Block) -> Block:
    return {"type": "text", "text": block["text"] if block["type"] == "text" else block_text(block)}


def _compact(parts: Sequence[Block]) -> Json:
    """A single text as a string, which every server takes."""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return list(parts)
