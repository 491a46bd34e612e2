"""Turns repaired until the Messages API takes them. Pure: turns in, turns and a report out.

Idempotent, linear, copy on write: turns and blocks that are fine come out as the same objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import is_
from types import MappingProxyType

from compaction.core.blocks import tidy
from compaction.core.call_pairs import pair_calls
from compaction.core.characters import clean_text
from compaction.core.fields import CALLS, ident
from compaction.core.messages import Block, Content
from compaction.core.server_pairs import pair_server_calls
from compaction.core.tool_ids import ToolIds
from compaction.core.turns import Turn, blocks_of, joined

OPENING = "(The conversation begins with the assistant's message.)"  # the first message must be a user's


@dataclass(frozen=True, slots=True)
class RepairReport:
    """How often each kind of repair was needed; kinds that were not needed are absent.

    characters_replaced, numbers_replaced, cache_marks_dropped, fields_dropped, citations_dropped, names_replaced,
    inputs_wrapped, results_rewritten, media_replaced, blank_blocks_dropped, thinking_blocks_dropped,
    blocks_turned_to_text, empty_turns_dropped, covered_turns_dropped (before a signed compaction block),
    server_blocks_turned_to_text, tool_ids_renamed, results_moved, results_added, loose_results_turned_to_text,
    loose_results_dropped (they held nothing), opening_added.
    """

    counts: Mapping[str, int]

    @property
    def total(self) -> int:
        """All repairs; 0 when the turns came out as they went in."""
        return sum(self.counts.values())


def repair(
    turns: Sequence[Turn], *, close_open: bool = False, faithful: bool = False, sound: bool = False
) -> tuple[list[Turn], RepairReport]:
    """Alternating turns that are valid when a user message is appended, and what had to be done.

    `close_open` gives open calls of the last assistant turn a result too; otherwise they wait, and the appended message
    must bring their results. `faithful` keeps signed thinking and cache marks where they stand. `sound` says that all
    strings and numbers are known to be clean (`Message.is_sound`), so that nobody looks through them again.
    """
    tally: Counter[str] = Counter()
    tidied = _alternating([_tidied(turn, tally, faithful=faithful, sound=sound) for turn in turns], tally)
    covered = _from_compaction(tidied, tally)
    ids = ToolIds(_call_ids(covered))
    served = pair_server_calls(covered, ids, tally)
    paired = _alternating(pair_calls(served, ids, tally, close_open=close_open), tally)
    if paired and paired[0]["role"] == "assistant" and not _is_signed_summary(blocks_of(paired[0]["content"])[0]):
        tally["opening_added"] += 1
        paired.insert(0, {"role": "user", "content": OPENING})
    return paired, RepairReport(MappingProxyType({kind: count for kind, count in tally.items() if count}))


def _tidied(turn: Turn, tally: Counter[str], *, faithful: bool, sound: bool) -> Turn:
    content: Content = turn["content"]
    if isinstance(content, str):
        tidied = _tidied_text(content, tally)
    else:
        blocks = [tidy(block, turn["role"], tally, faithful=faithful, sound=sound) for block in content]
        tidied = content if all(map(is_, blocks, content)) else [block for block in blocks if block is not None]
    return turn if tidied is content else {"role": turn["role"], "content": tidied}


def _tidied_text(text: str, tally: Counter[str]) -> Content:
    if not text or text.isspace():
        tally["blank_blocks_dropped"] += 1
        return []
    return clean_text(text, tally)


def _alternating(turns: list[Turn], tally: Counter[str]) -> list[Turn]:
    """The turns without empty ones, neighbours of one role joined."""
    if all(turn["content"] for turn in turns) and all(one["role"] != two["role"] for one, two in pairwise(turns)):
        return turns
    spoken: list[tuple[Turn, list[Content]]] = []
    for turn in turns:
        if not turn["content"]:
            tally["empty_turns_dropped"] += 1
        elif spoken and spoken[-1][0]["role"] == turn["role"]:
            spoken[-1][1].append(turn["content"])
        else:
            spoken.append((turn, [turn["content"]]))
    return [
        turn if len(contents) == 1 else {"role": turn["role"], "content": joined(contents)} for turn, contents in spoken
    ]


def _from_compaction(turns: list[Turn], tally: Counter[str]) -> list[Turn]:
    """The turns from the last signed compaction block on: the API takes such a block only at the very beginning."""
    last = (0, 0)
    for number, turn in enumerate(turns):
        for place, block in enumerate(blocks_of(turn["content"])):
            if block["type"] == "compaction" and _is_signed_summary(block):
                last = (number, place)
    if last == (0, 0):
        return turns
    number, place = last
    tally["covered_turns_dropped"] += number + 1
    first = turns[number]
    return [{"role": first["role"], "content": blocks_of(first["content"])[place:]}, *turns[number + 1 :]]


def _call_ids(turns: Sequence[Turn]) -> Iterator[str]:
    for turn in turns:
        if turn["role"] == "assistant":
            yield from (ident(block.get("id")) for block in blocks_of(turn["content"]) if block["type"] in CALLS)


def _is_signed_summary(block: Block) -> bool:
    """Whether this is a summary made and signed by the API (facts/anthropic.md §3a)."""
    return block["type"] == "compaction" and bool(block.get("signature")) and block.get("content") is not None
