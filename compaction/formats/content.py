"""What a message's content holds, counted without keeping any of it, for import reports and turn counts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import MAX_NESTING, Block

_THINKING = frozenset({"thinking", "redacted_thinking"})


class ContentFacts(msgspec.Struct, frozen=True, gc=False):
    """The counts of one row's content. `tool_uses` and `tool_results` are the call ids, in order."""

    tool_uses: tuple[str, ...] = ()
    tool_results: tuple[str, ...] = ()
    blank_texts: int = 0
    thinking: int = 0
    images: int = 0
    documents: int = 0
    text_chars: int | None = None  # length where the content is a string, None where it is a list


def content_facts(raw: bytes) -> ContentFacts | None:
    """The facts of the content in `raw`; None when it is none that a stored message may have.

    That is a string or a list of objects with a type, and nested so deep that the body around it may still be read.
    """
    try:
        value = jsonbytes.decode(raw)
    except ValueError:
        return None
    if isinstance(value, str):
        return ContentFacts(blank_texts=int(not value.strip()), text_chars=len(value))
    if not isinstance(value, list) or not all(map(_is_block, value)) or _too_deep(raw, value):
        return None
    return _tally(value)


def _is_block(value: Json) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _too_deep(raw: bytes, value: Json) -> bool:
    if raw.count(b"[") + raw.count(b"{") < MAX_NESTING:  # spares the walk for nearly every row
        return False
    return jsonbytes.nested_deeper_than(value, MAX_NESTING - 1)  # the body is one level more


def _tally(blocks: Sequence[Block]) -> ContentFacts:
    types = [block["type"] for block in blocks]
    inner = [name for block in blocks if block["type"] == "tool_result" for name in _inner_types(block.get("content"))]
    return ContentFacts(
        tool_uses=tuple(_id(block.get("id")) for block in blocks if block["type"] == "tool_use"),
        tool_results=tuple(_id(block.get("tool_use_id")) for block in blocks if block["type"] == "tool_result"),
        blank_texts=sum(1 for block in blocks if block["type"] == "text" and _is_blank(block.get("text"))),
        thinking=sum(1 for name in types if name in _THINKING),
        images=types.count("image") + inner.count("image"),
        documents=types.count("document") + inner.count("document"),
    )


def _inner_types(content: Json) -> list[Json]:
    """The block types inside a tool result."""
    return [block.get("type") for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _id(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _is_blank(text: Json) -> bool:
    return isinstance(text, str) and not text.strip()
