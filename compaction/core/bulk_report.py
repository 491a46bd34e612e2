"""What a bulk run did, in figures: sizes before and after, ratios, failures, cost, the slowest, the biggest losses."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

MAX_LISTED = 10  # of the slowest and of the losses: a person reads no more
FIRST_BUCKET_TOKENS = 1_000  # the first bar of a distribution; each further one ends at twice the tokens
MAX_BUCKETS = 12  # the last one begins at a million tokens, the largest window


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One session's end. `expected_usd` is the plan's estimate for the way that was gone."""

    session_id: str
    state: str
    cause: str | None = None  # the skip reason or the error code
    strategy: str | None = None
    before: int | None = None
    after: int | None = None
    dropped_rounds: int = 0
    dropped_tokens: int = 0
    seconds: float | None = None
    expected_usd: Decimal | None = None
    spent_usd: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Sizes in tokens. `buckets` counts those below 1,000, below 2,000, below 4,000 and so on; the last has no end."""

    median: int
    p90: int
    largest: int
    buckets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StrategyShare:
    """What one strategy did; `ratio` is what is left of the size."""

    strategy: str
    sessions: int
    before: int
    after: int

    @property
    def ratio(self) -> float:
        """What is left of the size, of 1."""
        return self.after / self.before if self.before else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkReport:
    """The whole report; lists of causes with the most frequent first."""

    succeeded: int
    before: Distribution
    after: Distribution
    strategies: tuple[StrategyShare, ...]
    failures: tuple[tuple[str, int], ...]
    skipped: tuple[tuple[str, int], ...]
    expected_usd: Decimal | None
    spent_usd: Decimal
    slowest: tuple[Outcome, ...]
    losses: tuple[Outcome, ...]


def distribution(sizes: Sequence[int]) -> Distribution:
    """The sizes by their quantiles and in buckets that double."""
    if not sizes:
        return Distribution(0, 0, 0, ())
    ordered = sorted(sizes)
    counted = Counter(map(_bucket, ordered))
    buckets = tuple(counted[place] for place in range(max(counted) + 1))
    return Distribution(_at(ordered, 0.5), _at(ordered, 0.9), ordered[-1], buckets)


def bucket_label(place: int) -> str:
    """What a bar of a distribution holds, in thousands of tokens: `<1k`, `1k`, `2k`, `4k` …, each from there on."""
    return "<1k" if not place else f"{2 ** (place - 1)}k"


@dataclass(slots=True)
class Gathering:
    """Takes outcomes one after the other; memory grows by two numbers per session."""

    _before: list[int] = field(default_factory=list)
    _after: list[int] = field(default_factory=list)
    _strategies: dict[str, StrategyShare] = field(default_factory=dict)
    _failures: Counter[str] = field(default_factory=Counter)
    _skipped: Counter[str] = field(default_factory=Counter)
    _expected: Decimal | None = Decimal(0)
    _spent: Decimal = Decimal(0)
    _slowest: list[Outcome] = field(default_factory=list)
    _losses: list[Outcome] = field(default_factory=list)

    def add(self, one: Outcome) -> None:
        """Takes the next outcome."""
        self._spent += one.spent_usd
        if one.state == "skipped":
            self._skipped[one.cause or "unknown"] += 1
            return
        if one.state in {"failed", "expired", "cancelled"}:
            self._failures[(one.cause if one.state == "failed" else one.state) or "internal"] += 1
        if one.state in {"failed", "succeeded"} and self._expected is not None:
            self._expected = None if one.expected_usd is None else self._expected + one.expected_usd
        if one.state == "succeeded":
            self._add_success(one)

    def _add_success(self, one: Outcome) -> None:
        before, after, strategy = one.before or 0, one.after or 0, one.strategy or "unknown"
        self._before.append(before)
        self._after.append(after)
        had = self._strategies.get(strategy, StrategyShare(strategy, 0, 0, 0))
        share = StrategyShare(strategy, had.sessions + 1, had.before + before, had.after + after)
        self._strategies[strategy] = share
        self._slowest = heapq.nlargest(MAX_LISTED, [*self._slowest, one], key=lambda told: told.seconds or 0.0)
        if one.dropped_rounds or one.dropped_tokens:
            self._losses = heapq.nlargest(MAX_LISTED, [*self._losses, one], key=lambda told: told.dropped_tokens)

    def report(self) -> BulkReport:
        """The figures over all that was added."""
        shares = sorted(self._strategies.values(), key=lambda share: (-share.sessions, share.strategy))
        return BulkReport(
            succeeded=len(self._before),
            before=distribution(self._before),
            after=distribution(self._after),
            strategies=tuple(shares),
            failures=tuple(self._failures.most_common()),
            skipped=tuple(self._skipped.most_common()),
            expected_usd=self._expected,
            spent_usd=self._spent,
            slowest=tuple(self._slowest),
            losses=tuple(self._losses),
        )


def _bucket(tokens: int) -> int:
    if tokens < FIRST_BUCKET_TOKENS:
        return 0
    return min(MAX_BUCKETS - 1, int(math.log2(tokens / FIRST_BUCKET_TOKENS)) + 1)


def _at(ordered: Sequence[int], share: float) -> int:
    """The nearest-rank quantile."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
