"""One content block made sendable, by the rules of facts/anthropic.md §8 and §9 that need no look at its neighbours.

Copy on write: a block that is fine is returned as the same object.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from operator import is_

from compaction.core.block_text import block_text, json_text, media_text
from compaction.core.characters import clean_value, is_clean
from compaction.core.fields import (
    CALLS,
    CITATION_ANSWER_FIELDS,
    IN_RESULTS,
    MEDIA,
    NOT_NULL,
    REQUEST_FIELDS,
    SIGNED,
    TOOL_NAME,
    is_server_result,
    speaker,
)
from compaction.core.jsonbytes import Json
from compaction.core.messages import Block

NO_OUTPUT = "(no output)"  # an error result must say something
UNKNOWN_TOOL = "unknown_tool"

# Without marks, which may have to go, and callers, which must name a call of this request.
_USUAL_FIELDS = {kind: fields - {"cache_control", "caller"} for kind, fields in REQUEST_FIELDS.items()}
_TOO_LONG_OR_ODD = re.compile(r"[^a-zA-Z0-9_-]")


def tidy(block: Block, role: str, tally: Counter[str], *, faithful: bool = False, sound: bool = False) -> Block | None:
    """The block as a message of `role` can carry it, None when nothing is left of it. Counts each change in `tally`.

    `faithful` keeps signed thinking and cache marks: for a prefix that must stay byte for byte. `sound` says that its
    strings and numbers are known to be clean.
    """
    kind = str(block.get("type"))
    if kind in SIGNED and not (faithful and role == "assistant" and _is_signed(block)):
        tally["thinking_blocks_dropped"] += 1
        return None
    cleaned = block
    if not _is_ordinary(block, kind, sound=sound):
        cleaned = _known_fields(_clean(block, tally, drop_marks=not faithful), kind, tally)
    if speaker(kind) not in (None, role):
        return _told(cleaned, tally)
    step = _STEPS.get(kind)
    return cleaned if step is None else step(cleaned, role, tally)


def text_block(text: str) -> Block:
    """A block that says `text`."""
    return {"type": "text", "text": text}


def without_marks(block: Block) -> Block:
    """The block without cache marks, its own and those of the blocks inside it."""
    return _clean(block, Counter(), drop_marks=True)


def _is_ordinary(block: Block, kind: str, *, sound: bool) -> bool:
    """Whether the block has usual fields only, and nothing in them to clean: most blocks, and seen cheaply."""
    fields = _USUAL_FIELDS.get(kind)
    if fields is None or not block.keys() <= fields:
        return False
    for key, value in block.items():
        if value is None or not (
            (sound and (type(value) is str or key == "input")) or is_clean(value, drop_marks=True)
        ):
            return False
    return True


def _is_signed(block: Block) -> bool:
    proof = block.get("signature") if block["type"] == "thinking" else block.get("data")
    return isinstance(proof, str) and proof != ""


def _clean(block: Block, tally: Counter[str], *, drop_marks: bool) -> Block:
    """Characters, numbers and marks; a call's input is the tool's own data, where a key named like a mark is none."""
    if is_clean(block, drop_marks=drop_marks):
        return block
    rest = {key: value for key, value in block.items() if key != "input"}
    cleaned: Block = clean_value(rest, tally, drop_marks=drop_marks)
    if "input" in block:
        cleaned = {**cleaned, "input": clean_value(block["input"], tally)}
    return block if cleaned == block else cleaned


def _known_fields(block: Block, kind: str, tally: Counter[str]) -> Block:
    """The block with the fields that requests have; what optional fields of it hold is what they may hold."""
    fields = REQUEST_FIELDS.get(kind)
    if fields is None or (block.keys() <= fields and None not in block.values() and "caller" not in block):
        return block
    kept = {key: value for key, value in block.items() if key in fields and _may_hold(key, value)}
    tally["fields_dropped"] += len(block) - len(kept)
    return kept if len(kept) < len(block) else block


def _may_hold(key: str, value: Json) -> bool:
    if key == "caller":
        return isinstance(value, dict) and isinstance(value.get("tool_id", ""), str)
    return value is not None or key not in NOT_NULL


def _told(block: Block, tally: Counter[str]) -> Block | None:
    """What the block says as text, where it cannot stand as what it is."""
    text = block_text(block)
    tally["blocks_turned_to_text"] += 1
    return text_block(text) if text.strip() else None


def _text(block: Block, role: str, tally: Counter[str]) -> Block | None:
    text = block.get("text")
    if text is not None and not isinstance(text, str):
        tally["blocks_turned_to_text"] += 1
        return text_block(json_text(text))
    if not text or text.isspace():
        tally["blank_blocks_dropped"] += 1
        return None
    citations = block.get("citations")
    if citations is None or citations == []:
        return block
    kept = [] if role == "user" or not isinstance(citations, list) else _citations(citations)
    if kept == citations and kept:
        return block
    tally["citations_dropped"] += 1
    rest = {key: value for key, value in block.items() if key != "citations"}
    return {**rest, "citations": kept} if kept else rest


def _citations(citations: list[Json]) -> list[Json]:
    """The citations without the fields that only answers have."""
    return [
        {key: value for key, value in citation.items() if key not in CITATION_ANSWER_FIELDS}
        for citation in citations
        if isinstance(citation, dict)
    ]


def _media(block: Block, role: str, tally: Counter[str]) -> Block:
    del role
    if isinstance(block.get("source"), dict):
        return block
    tally["media_replaced"] += 1
    return text_block(media_text(block))


def _call(block: Block, role: str, tally: Counter[str]) -> Block:
    del role
    changes: Block = {}
    name, inputs = block.get("name"), block.get("input")
    if not isinstance(name, str) or not name.strip():
        changes["name"] = UNKNOWN_TOOL
    elif block["type"] == "tool_use" and not TOOL_NAME.fullmatch(name):
        changes["name"] = _TOO_LONG_OR_ODD.sub("_", name)[:128]
    if not isinstance(inputs, dict):
        changes["input"] = {} if inputs is None else {"value": inputs}
    if not changes:
        return block
    tally["names_replaced"] += "name" in changes
    tally["inputs_wrapped"] += "input" in changes
    return {**block, **changes}


def _result(block: Block, role: str, tally: Counter[str]) -> Block:
    del role
    error, before = block.get("is_error"), block.get("content")
    content = _result_content(before, tally)
    if not content and error:
        content = NO_OUTPUT
    whole = content is not None or "content" not in block
    if content is before and whole and (error is None or isinstance(error, bool)):
        return block
    changed = {key: value for key, value in block.items() if key not in ("content", "is_error")}
    if content is not None:
        changed["content"] = content
    if error is not None:
        changed["is_error"] = bool(error)
    tally["results_rewritten"] += 1
    return changed


def _result_content(content: Json, tally: Counter[str]) -> Json:
    """A result's content as the API takes it: blocks that results may hold, no blank ones; None when nothing is left.

    An empty string passes: real sessions hold it and went on.
    """
    if content is None or isinstance(content, str):
        return None if content is None or content.isspace() else content
    items = content if isinstance(content, list) else [content]
    kept = [block for item in items if (block := _inner(item, tally)) is not None]
    same = isinstance(content, list) and len(kept) == len(content) and all(map(is_, kept, content))
    return (content if same else kept) or None


def _inner(item: Json, tally: Counter[str]) -> Block | None:
    """One block inside a tool result; marks that may not stay are gone with those of the result."""
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        words = item.get("text") if isinstance(item, dict) else item
        item = text_block(words if isinstance(words, str) else json_text(item))
    kind = item["type"]
    known = kind in IN_RESULTS or kind in SIGNED
    if known or (kind not in REQUEST_FIELDS and not is_server_result(kind)):
        return tidy(item, "user", tally, faithful=True)
    return _told(item, tally)


def _compaction(block: Block, role: str, tally: Counter[str]) -> Block | None:
    del role
    content = block.get("content")
    if isinstance(content, str) and not content.strip():
        tally["blank_blocks_dropped"] += 1
        return None
    return block


_Step = Callable[[Block, str, Counter[str]], Block | None]
_STEPS: dict[str, _Step] = {
    "text": _text,
    "tool_result": _result,
    "compaction": _compaction,
    **dict.fromkeys(MEDIA, _media),
    **dict.fromkeys(CALLS, _call),
}
