"""Pairs of client tools: each call's one result in the very next user turn, before anything else there.

A result belongs to a call of the turn before it, by id; where ids repeat, by order. Any other result becomes text where
it stands, so that nothing a tool said is lost; a call without a result gets one that says so.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from operator import is_

from compaction.core.block_text import content_text
from compaction.core.blocks import text_block
from compaction.core.fields import MEDIA, ident
from compaction.core.messages import Block
from compaction.core.tool_ids import ToolIds
from compaction.core.turns import Turn, blocks_of

NO_RESULT = "No result was recorded for this call."
LOOSE_RESULT = "[Result of a tool call that does not stand right before it]"
LOOSE_ERROR = "[Error of a tool call that does not stand right before it]"

_Call = tuple[str, str]  # the id it is stored under, the id it is sent with


def pair_calls(turns: Sequence[Turn], ids: ToolIds, tally: Counter[str], *, close_open: bool) -> list[Turn]:
    """The turns with complete pairs of client tools; turns that are fine are the same objects.

    Calls of the last assistant turn stay open when nothing but results follows, unless `close_open`. A turn comes out
    empty when all it held were results without content and without a call.
    """
    paired: list[Turn] = []
    waiting: list[_Call] = []
    for number, turn in enumerate(turns):
        blocks = blocks_of(turn["content"])
        if turn["role"] == "assistant":
            mended, waiting = _named(blocks, ids, tally)
        else:
            mended = blocks
            if not _are_answers(blocks, waiting):
                may_wait = number == len(turns) - 1 and not close_open
                mended = _answered(blocks, _Matching(waiting), tally, may_wait=may_wait)
            waiting = []
        paired.append(turn if mended is blocks else {"role": turn["role"], "content": mended})
    if close_open and waiting:
        paired.append({"role": "user", "content": _missing([sent for _, sent in waiting], tally)})
    return paired


def _named(blocks: list[Block], ids: ToolIds, tally: Counter[str]) -> tuple[list[Block], list[_Call]]:
    """The blocks of an assistant turn with each call under its sent id, and the calls."""
    mended = blocks
    calls: list[_Call] = []
    for place, block in enumerate(blocks):
        if block["type"] == "tool_use":
            stored = block.get("id")
            key = ident(stored)
            sent = ids.claim(key)
            calls.append((key, sent))
            if sent != stored:
                tally["tool_ids_renamed"] += 1
                mended = list(blocks) if mended is blocks else mended
                mended[place] = {**block, "id": sent}
    return mended, calls


def _are_answers(blocks: list[Block], calls: list[_Call]) -> bool:
    """Whether the blocks begin with one result per call, in order, and hold no other result: nothing to repair."""
    if len(blocks) < len(calls):
        return False
    for block, (stored, sent) in zip(blocks, calls, strict=False):
        if block["type"] != "tool_result" or block.get("tool_use_id") != sent or stored != sent:
            return False
    return len(blocks) == len(calls) or all(block["type"] != "tool_result" for block in blocks[len(calls) :])


class _Matching:
    """The calls of one assistant turn while their results are looked for."""

    def __init__(self, calls: Sequence[_Call]) -> None:
        self._left = dict.fromkeys(sent for _, sent in calls)
        self._queues: dict[str, deque[str]] = {}  # stored id → sent ids in order
        for stored, sent in calls:
            self._queues.setdefault(stored, deque()).append(sent)

    def take(self, named: str) -> str | None:
        """The sent id of the first waiting call that a result naming `named` answers, None when there is none.

        A client that works on what we sent names the sent id.
        """
        queue = self._queues.get(named, deque())
        while queue:
            sent = queue.popleft()
            if sent in self._left:  # else a result named it by its sent id before
                del self._left[sent]
                return sent
        if named in self._left:
            del self._left[named]
            return named
        return None

    def left(self) -> list[str]:
        """The sent ids without a result, in the order of the calls."""
        return list(self._left)


def _answered(blocks: list[Block], waiting: _Matching, tally: Counter[str], *, may_wait: bool) -> list[Block]:
    """The blocks of a user turn: results of the waiting calls first, then everything else."""
    results: list[Block] = []
    others: list[Block] = []
    for block in blocks:
        if block["type"] != "tool_result":
            others.append(block)
            continue
        tally["results_moved"] += bool(others)
        sent = waiting.take(ident(block.get("tool_use_id")))
        if sent is None:
            others += _loose(block, tally)
        else:
            results.append(block if block.get("tool_use_id") == sent else {**block, "tool_use_id": sent})
    if not (may_wait and not others):
        results += _missing(waiting.left(), tally)
    ordered = results + others
    return blocks if len(ordered) == len(blocks) and all(map(is_, ordered, blocks)) else ordered


def _missing(calls: list[str], tally: Counter[str]) -> list[Block]:
    tally["results_added"] += len(calls)
    return [{"type": "tool_result", "tool_use_id": sent, "content": NO_RESULT, "is_error": True} for sent in calls]


def _loose(block: Block, tally: Counter[str]) -> list[Block]:
    """A result without its call, as what a user may say: its text under a label, then its images and documents."""
    content = block.get("content")
    items = content if isinstance(content, list) else []
    media = [item for item in items if item["type"] in MEDIA]
    text = content_text([item for item in items if item["type"] not in MEDIA] if items else content)
    if not text.strip() and not media:
        tally["loose_results_dropped"] += 1
        return []
    tally["loose_results_turned_to_text"] += 1
    label = LOOSE_ERROR if block.get("is_error") else LOOSE_RESULT
    return [text_block(f"{label}\n{text}" if text.strip() else label), *media]
