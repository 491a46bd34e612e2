"""The overview's figures, by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from api.dashboard.summing import Sums, points, summed
from compaction.store.tallies import Tally

NOW = datetime(2026, 12, 1, 12, 10, tzinfo=UTC)


def tally(minutes_ago: int, outcome: str = "succeeded", model: str = "claude-haiku-4-5", **sums: int) -> Tally:
    facts = {"jobs": 1, "pre_tokens": 0, "post_tokens": 0, "unpriced": 0} | sums
    return Tally(NOW - timedelta(minutes=minutes_ago), outcome, model, cost_usd=Decimal("0.10"), **facts)


def test_savings_are_priced_by_each_sessions_model() -> None:
    """Haiku 4.5 takes $1 a million input tokens, Opus 4.6 $5: 100,000 and 200,000 tokens less are $0.10 and $1.00."""
    found = summed(
        [
            tally(5, jobs=2, pre_tokens=120_000, post_tokens=20_000),
            tally(5, model="us.anthropic.claude-opus-4-6-v1:0", pre_tokens=210_000, post_tokens=10_000),
            tally(5, model="unheard-of", pre_tokens=50_000, post_tokens=10_000, unpriced=1),
            tally(5, "failed", jobs=3),
            tally(5, "cancelled"),
            tally(5, "skipped"),
        ]
    )
    assert found == Sums(
        succeeded=4,
        skipped=1,
        failed=3,
        cancelled=1,
        saved_tokens=340_000,
        cost_usd=Decimal("0.60"),
        saved_usd=Decimal("1.10"),
        unpriced=1,
    )
    assert (found.ended, found.judged) == (9, 8)


def test_a_day_has_a_point_for_each_half_hour_those_without_jobs_too() -> None:
    found = points([tally(0, jobs=2), tally(9, "failed"), tally(11), tally(23 * 60, jobs=4), tally(25 * 60)], NOW, 24)
    assert len(found) == 48
    assert (found[-1].at, found[0].at) == (
        datetime(2026, 12, 1, 12, tzinfo=UTC),
        datetime(2026, 11, 30, 12, 30, tzinfo=UTC),
    )
    assert (found[-1].succeeded, found[-1].failed, found[-2].succeeded) == (2, 1, 1)
    assert sum(point.succeeded for point in found) == 7  # the one of yesterday morning is not part of it
