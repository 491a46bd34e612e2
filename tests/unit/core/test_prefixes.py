from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import pytest

from compaction.core import prefixes
from compaction.core.messages import Message
from compaction.core.prefixes import Difference
from compaction.core.turns import Turn

SUMMARY = Message(role="user", content="Summary.", is_compact_summary=True)
FILE = Message(role="user", content="The file again.", is_meta=True)
NEXT = Message(role="assistant", content="Going on.", seq=5)
LAST = Message(role="user", content="Good.", seq=6)


def chain(turns: Sequence[Turn]) -> str:
    """The recipe in the standard library's words, for what is ASCII and has no fractions."""
    last = ""
    for turn in turns:
        text = json.dumps({"content": turn["content"], "role": turn["role"]}, separators=(",", ":"), sort_keys=True)
        last = hashlib.sha256((last + text).encode("ascii")).hexdigest()
    return last


def turn(message: Message) -> Turn:
    return {"role": message.role, "content": message.content}


def test_a_history_without_an_earlier_result_can_be_held_in_one_way() -> None:
    [only] = prefixes.copies([], [LAST, NEXT])
    assert only[-1] == chain([turn(LAST), turn(NEXT)])


def test_behind_a_result_three_lists_are_the_same_conversation() -> None:
    """Message by message; api_messages and what followed; api_messages with the tail of that time and what followed."""
    boundary = Message(role="system", content="", metadata={"kind": "compact_boundary"})
    ways = prefixes.copies([boundary, SUMMARY, FILE], [NEXT, LAST], given=1)
    blocks = [{"type": "text", "text": "Summary."}, {"type": "text", "text": "The file again."}]
    held = [hashes[-1] for hashes in ways]
    assert held[0] == chain([turn(SUMMARY), turn(FILE), turn(NEXT), turn(LAST)])
    assert chain([{"role": "user", "content": blocks}, turn(NEXT), turn(LAST)]) in held
    assert len(ways) == 3


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (["a", "b", "c"], ["a", "x", "y"], Difference(1, 3)),
        (["a", "b", "c"], ["a", "b"], Difference(2, 3)),
        (["a", "b"], ["a", "b", "c"], Difference(2, 2)),
        (["a", "b"], [], Difference(0, 2)),
    ],
)
def test_the_first_index_that_differs_is_told(ours: list[str], theirs: list[str], expected: Difference) -> None:
    assert prefixes.difference([ours], theirs) == expected


def test_of_several_ways_the_one_that_is_followed_longest_counts() -> None:
    assert prefixes.difference([["a", "b", "c"], ["x", "y"]], ["x", "z"]) == Difference(1, 2)
