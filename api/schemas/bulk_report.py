"""What a bulk run did, in figures."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from api.schemas.bulk import RUN_ID
from api.schemas.fields import Answer
from compaction.core import bulk_report
from compaction.core.bulk_report import BulkReport

_SIZES: dict[str, Any] = {"median": 61_000, "p90": 148_000, "largest": 930_000, "buckets": [0, 2, 5, 9]}
_REPORT: dict[str, Any] = {
    "bulk_id": RUN_ID,
    "succeeded": 16,
    "tokens_before": _SIZES,
    "tokens_after": {"median": 4_800, "p90": 7_900, "largest": 11_200, "buckets": [0, 0, 3, 10, 3]},
    "strategies": [{"strategy": "fresh", "sessions": 16, "before": 976_000, "after": 76_800, "ratio": 0.0787}],
    "failures": [{"cause": "not_effective", "sessions": 1}],
    "skipped": [{"cause": "unchanged", "sessions": 4}],
    "cost": {"expected_usd": 2.41, "spent_usd": 2.18},
    "slowest": [{"session_id": "agent-7:2026-11-30", "seconds": 41.2}],
    "losses": [{"session_id": "agent-9:2026-11-28", "rounds": 31, "tokens": 88_000}],
}


class Sizes(Answer):
    """Tokens of sessions. `buckets` counts those below 1,000, 2,000, 4,000 and so on."""

    median: int
    p90: int
    largest: int
    buckets: list[int]

    @classmethod
    def of(cls, told: bulk_report.Distribution) -> Sizes:
        """The distribution as clients see it."""
        return cls(median=told.median, p90=told.p90, largest=told.largest, buckets=list(told.buckets))


class StrategyRatio(Answer):
    """What one strategy made of how much; `ratio` is what is left."""

    strategy: str
    sessions: int
    before: int
    after: int
    ratio: float


class Cause(Answer):
    """Why sessions failed or were skipped."""

    cause: str
    sessions: int


class ReportCost(Answer):
    """US dollars: by the plan's estimate for what was done, null when a price is unknown; and as it was."""

    expected_usd: float | None
    spent_usd: float


class Slow(Answer):
    """A session that took long."""

    session_id: str
    seconds: float | None


class Loss(Answer):
    """A session whose oldest rounds did not fit and stand in no summary."""

    session_id: str
    rounds: int
    tokens: int


class BulkFigures(Answer):
    """The report of a run, as far as it has come."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_REPORT]})

    bulk_id: str
    succeeded: int
    tokens_before: Sizes
    tokens_after: Sizes
    strategies: list[StrategyRatio]
    failures: list[Cause]
    skipped: list[Cause]
    cost: ReportCost
    slowest: list[Slow] = Field(description="The ten that took longest")
    losses: list[Loss] = Field(description="The ten that lost most tokens")

    @classmethod
    def of(cls, run_id: str, told: BulkReport) -> BulkFigures:
        """The report as clients see it."""
        return cls(
            bulk_id=run_id,
            succeeded=told.succeeded,
            tokens_before=Sizes.of(told.before),
            tokens_after=Sizes.of(told.after),
            strategies=[
                StrategyRatio(
                    strategy=one.strategy,
                    sessions=one.sessions,
                    before=one.before,
                    after=one.after,
                    ratio=round(one.ratio, 4),
                )
                for one in told.strategies
            ],
            failures=[Cause(cause=cause, sessions=count) for cause, count in told.failures],
            skipped=[Cause(cause=cause, sessions=count) for cause, count in told.skipped],
            cost=ReportCost(
                expected_usd=None if told.expected_usd is None else float(told.expected_usd),
                spent_usd=float(told.spent_usd),
            ),
            slowest=[Slow(session_id=one.session_id, seconds=one.seconds) for one in told.slowest],
            losses=[
                Loss(session_id=one.session_id, rounds=one.dropped_rounds, tokens=one.dropped_tokens)
                for one in told.losses
            ],
        )
