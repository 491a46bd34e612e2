"""Whether a producer's copy of a conversation is still what a result replaces, told by hashes (`wire.prefix_hashes`).

A producer hashes what it holds, and there are three ways to hold the same conversation after an earlier result: that
result's messages one by one with what was appended behind them, its api_messages with what was appended behind them, or
the api_messages that `apply` gave (result and tail in one) with what was appended later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.core import wire
from compaction.core.messages import Message


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a producer's hashes leave ours: `index` counts from 0; `length` is how many messages a result replaces.

    An index equal to the length says that the producer's list is longer: its first `length` messages are the same.
    """

    index: int
    length: int


def copies(earlier: Sequence[Message], appended: Sequence[Message], given: int = 0) -> list[list[str]]:
    """The hashes of every way to hold `earlier` (a result's messages) and what was `appended` behind it.

    `given` of the appended ones came to the producer together with the earlier result.
    """
    ways = [wire.prefix_hashes([*earlier, *appended])]
    if earlier:
        for count in sorted({0, given}):
            swapped = [Message(**turn) for turn in wire.api_messages([*earlier, *appended[:count]])]
            ways.append(wire.prefix_hashes([*swapped, *appended[count:]]))
    return ways


def difference(ways: Sequence[Sequence[str]], theirs: Sequence[str]) -> Difference:
    """Where `theirs` leaves the way that it follows longest."""
    found = [Difference(_common(ours, theirs), len(ours)) for ours in ways]
    return max(found, key=lambda one: one.index)


def _common(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """How many hashes from the beginning are equal."""
    pairs = zip(ours, theirs, strict=False)
    return next((index for index, (our, their) in enumerate(pairs) if our != their), min(len(ours), len(theirs)))
