"""Sums of tallies for the overview: a day's figures, and its points for a chart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from compaction.core.messages import Usage
from compaction.store.tallies import Tally
from compaction.summarizers import models

POINT_MINUTES = 30  # 48 points a day: a bar each on a phone, and no gaps at a few jobs an hour
ENDED = ("succeeded", "skipped", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Sums:
    """How jobs ended. `saved_usd` is what one further call of each compacted session costs less, uncached."""

    succeeded: int = 0
    skipped: int = 0
    failed: int = 0
    cancelled: int = 0
    saved_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    saved_usd: Decimal = Decimal(0)
    unpriced: int = 0

    @property
    def ended(self) -> int:
        """All of them."""
        return self.succeeded + self.skipped + self.failed + self.cancelled

    @property
    def judged(self) -> int:
        """Those that worked or did not: nobody's fault that a job was cancelled."""
        return self.succeeded + self.skipped + self.failed


@dataclass(frozen=True, slots=True)
class Point:
    """How jobs ended within POINT_MINUTES from `at`."""

    at: datetime
    succeeded: int
    skipped: int
    failed: int
    cancelled: int
    saved_tokens: int


def summed(tallies: Iterable[Tally]) -> Sums:
    """The figures of all tallies."""
    counts = dict.fromkeys(ENDED, 0)
    saved_tokens, unpriced = 0, 0
    cost, saved = Decimal(0), Decimal(0)
    for one in tallies:
        counts[one.outcome] = counts.get(one.outcome, 0) + one.jobs
        less = one.pre_tokens - one.post_tokens
        saved_tokens += less
        cost += one.cost_usd
        saved += models.price(one.model, Usage(input_tokens=max(less, 0))) or Decimal(0)
        unpriced += one.unpriced
    return Sums(**counts, saved_tokens=saved_tokens, cost_usd=cost, saved_usd=saved, unpriced=unpriced)


def points(tallies: Iterable[Tally], now: datetime, hours: int) -> list[Point]:
    """One point for each POINT_MINUTES of the last `hours`, oldest first, those without jobs too."""
    size_seconds = POINT_MINUTES * 60
    last = int(now.timestamp()) // size_seconds
    first = last - hours * 3600 // size_seconds + 1
    found = {number: dict.fromkeys((*ENDED, "saved_tokens"), 0) for number in range(first, last + 1)}
    for one in tallies:
        place = found.get(int(one.at.timestamp()) // size_seconds)
        if place is not None:
            place[one.outcome] = place.get(one.outcome, 0) + one.jobs
            place["saved_tokens"] += one.pre_tokens - one.post_tokens
    begin = datetime.fromtimestamp(0, UTC)
    return [Point(begin + timedelta(seconds=number * size_seconds), **counts) for number, counts in found.items()]
