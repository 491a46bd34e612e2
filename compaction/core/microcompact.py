"""Micro-compaction: old results of tools that can be called again are cleared, without a summary (DESIGN §3).

`time_based` rewrites the history when the prompt cache has gone cold anyway. `prepare` does the same to the input of a
summary that would not fit. While the cache is warm, `core.context_edits` lets the API clear the same results instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

from compaction.core import ages, tokens
from compaction.core.exchanges import Exchange, exchanges
from compaction.core.jsonbytes import Json
from compaction.core.kept import parted_from_thinking
from compaction.core.messages import Block, Message
from compaction.core.tool_table import ToolTable

THRESHOLD_MS = 300_000  # DESIGN §3: five minutes, the lifetime of the prompt cache
KEEP_RESULTS = 3  # the API's own default for `keep` (facts/anthropic.md §3c)
MIN_RESULT_TOKENS = 100  # a shorter result costs hardly more than the marker in its place
SAMPLES, SAMPLE_CHARS = 16, 64  # of a long result, evenly spread: some percent off, where the estimate itself is 15 off
MIN_SAVED_TOKENS = 2_000  # about one file that an agent reads: for less, what is lost is worth more than the room

CLEARED = (
    "[An older result of this tool stood here; it was cleared to make room. What it showed may have changed since.]"
)
CLEARED_TOKENS = tokens.estimate_block({"type": "tool_result", "content": CLEARED})


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroCompaction:
    """The rewritten history. What needed no change is the same object as before.

    `cleared_ids` are the calls whose results were cleared now, oldest first (an id twice where a producer uses it
    twice); results that an edit of the API cleared before are rewritten too, but neither listed nor counted again.
    `saved_tokens` is our estimate; thinking that had to go is in it.
    """

    messages: tuple[Message, ...]
    cleared_ids: tuple[str, ...]
    saved_tokens: int
    kept_results: int

    def event_fields(self) -> dict[str, Json]:
        """What the job's timeline tells about it; ids and sizes, no content."""
        return {
            "cleared_tool_ids": list(self.cleared_ids),
            "cleared_results": len(self.cleared_ids),
            "kept_results": self.kept_results,
            "saved_tokens": self.saved_tokens,
        }


def time_based(  # noqa: PLR0913 - the rule's numbers
    messages: Sequence[Message],
    *,
    now: datetime,
    table: ToolTable,
    threshold_ms: int = THRESHOLD_MS,
    keep_results: int = KEEP_RESULTS,
    already_cleared: AbstractSet[str] = frozenset(),
    min_saved_tokens: int = MIN_SAVED_TOKENS,
) -> MicroCompaction | None:
    """The history without old results, when the last assistant message is older than the threshold; else None.

    `messages` is a live view, `now` has a time zone. None also when the last assistant message does not say when it was
    made, and when less than `min_saved_tokens` would be saved. The newest `keep_results` results of the table's tools
    stay. All thinking behind the first rewritten message goes: it was signed for what stood before it.
    """
    answered = ages.last_answer_at(messages)
    if answered is None or now - answered <= timedelta(milliseconds=threshold_ms):
        return None
    old, kept_results = _old_results(messages, table, keep_results)
    return _cleared(messages, old, already_cleared, kept_results, min_saved_tokens)


def prepare(
    messages: Sequence[Message], *, table: ToolTable, excess_tokens: int, keep_results: int = KEEP_RESULTS
) -> MicroCompaction | None:
    """The input of a summary with its oldest results cleared until `excess_tokens` are saved; None when none need go.

    For a full compaction: what the session goes on with is not touched. No more is cleared than must be, for what is
    cleared stands in no summary; where clearing all of it does not suffice, the head cut follows (`core.truncation`).
    """
    if excess_tokens <= 0:
        return None
    old, kept_results = _old_results(messages, table, keep_results)
    savings = accumulate(one.saving for one in old)
    enough = next((count for count, saved in enumerate(savings, 1) if saved >= excess_tokens), len(old))
    return _cleared(messages, old[:enough], frozenset(), kept_results + len(old) - enough, 1)


def saving(result: Block) -> int:
    """The estimated tokens that clearing this result saves; below 0 when the marker is the longer.

    Of a long text a sample is looked at: an estimate of what goes need not cost more than all the rest.
    """
    content = result.get("content")
    if not isinstance(content, str):
        return tokens.estimate_block(result) - CLEARED_TOKENS
    return _estimated(content) + tokens.RESULT_TOKENS - CLEARED_TOKENS


def _estimated(text: str) -> int:
    if len(text) < 2 * SAMPLES * SAMPLE_CHARS:
        return tokens.estimate_text(text)
    step = len(text) // SAMPLES
    sample = "".join([text[place : place + SAMPLE_CHARS] for place in range(0, len(text), step)])
    return tokens.estimate_text(sample) * len(text) // len(sample)


class _Old(NamedTuple):
    """One result that may be cleared, estimated once."""

    exchange: Exchange
    saving: int


def _old_results(messages: Sequence[Message], table: ToolTable, keep_results: int) -> tuple[list[_Old], int]:
    """The results that are worth clearing, oldest first, and how many of the table's tools then stay."""
    found = [one for one in exchanges(messages) if table.compactable(one.call.get("name"))]
    worth = []
    for one in found[: max(0, len(found) - keep_results)]:
        saved = 0 if one.result.get("content") == CLEARED else saving(one.result)
        if saved >= MIN_RESULT_TOKENS - CLEARED_TOKENS:
            worth.append(_Old(one, saved))
    return worth, len(found) - len(worth)


def _cleared(
    messages: Sequence[Message],
    old: Sequence[_Old],
    already_cleared: AbstractSet[str],
    kept_results: int,
    min_saved_tokens: int,
) -> MicroCompaction | None:
    new = [one for one in old if one.exchange.ident not in already_cleared]
    if not new:
        return None
    rewritten = _rewritten(messages, [one.exchange for one in old])
    first = min(one.exchange.result_at[0] for one in old)
    lighter, thoughts = parted_from_thinking(rewritten, first)
    saved = sum(one.saving for one in new) + sum(map(tokens.estimate_block, thoughts))
    if saved < min_saved_tokens:
        return None
    return MicroCompaction(
        messages=lighter,
        cleared_ids=tuple(one.exchange.ident for one in new),
        saved_tokens=saved,
        kept_results=kept_results,
    )


def _rewritten(messages: Sequence[Message], old: Sequence[Exchange]) -> list[Message]:
    """The messages with the marker in place of these results; each touched message is copied once."""
    changed: dict[int, list[Block]] = {}
    for one in old:
        number, place = one.result_at
        if number not in changed:
            changed[number] = list(messages[number].blocks())
        changed[number][place] = {**one.result, "content": CLEARED}
    return [
        message.rewritten(changed[number], message.parent_uuid) if number in changed else message
        for number, message in enumerate(messages)
    ]
