from __future__ import annotations

from decimal import Decimal

import pytest

from compaction.core import bulk_report
from compaction.core.bulk_report import Gathering, Outcome


def success(name: str = "s", **fields: object) -> Outcome:
    facts: dict[str, object] = {"strategy": "fresh", "before": 10_000, "after": 1_000, "expected_usd": Decimal("0.1")}
    return Outcome(session_id=name, state="succeeded", **(facts | fields))  # type: ignore[arg-type]  # words of a test


def test_a_distribution_has_nearest_rank_quantiles_and_buckets_that_double() -> None:
    """By hand: 500 is below 1k, 1,000 and 1,999 begin at 1k, 4,000 at 4k; of four sizes the second is the median."""
    told = bulk_report.distribution([4_000, 500, 1_999, 1_000])
    assert (told.median, told.p90, told.largest) == (1_000, 4_000, 4_000)
    assert told.buckets == (1, 2, 0, 1)
    assert [bulk_report.bucket_label(place) for place in range(4)] == ["<1k", "1k", "2k", "4k"]


def test_no_session_is_an_empty_distribution() -> None:
    assert bulk_report.distribution([]).buckets == ()
    assert Gathering().report().succeeded == 0


def test_sizes_beyond_a_million_share_the_last_bucket() -> None:
    assert len(bulk_report.distribution([2_000_000, 50_000_000]).buckets) == 12


def test_strategies_failures_and_skips_are_counted_apart() -> None:
    gathering = Gathering()
    for one in (
        success(),
        success(before=30_000, after=1_000),
        success(strategy="session_memory"),
        Outcome(session_id="f", state="failed", cause="not_effective", expected_usd=Decimal("0.1")),
        Outcome(session_id="g", state="expired", cause="timeout"),
        Outcome(session_id="u", state="skipped", cause="unchanged"),
    ):
        gathering.add(one)
    report = gathering.report()
    assert [(share.strategy, share.sessions, share.ratio) for share in report.strategies] == [
        ("fresh", 2, 0.05),
        ("session_memory", 1, 0.1),
    ]
    assert report.failures == (("not_effective", 1), ("expired", 1))
    assert report.skipped == (("unchanged", 1),)
    assert report.expected_usd == Decimal("0.4")


def test_an_unknown_price_makes_the_expectation_unknown_and_not_the_sum_of_the_rest() -> None:
    gathering = Gathering()
    gathering.add(success(spent_usd=Decimal("0.2")))
    gathering.add(success(expected_usd=None))
    assert (gathering.report().expected_usd, gathering.report().spent_usd) == (None, Decimal("0.2"))


def test_the_slowest_and_the_biggest_losses_come_first_and_are_ten() -> None:
    gathering = Gathering()
    for number in range(15):
        gathering.add(success(f"s{number}", seconds=float(number), dropped_rounds=1, dropped_tokens=number))
    report = gathering.report()
    assert [one.session_id for one in report.slowest[:2]] == ["s14", "s13"]
    assert len(report.slowest) == len(report.losses) == 10
    assert report.losses[0].dropped_tokens == 14


def test_a_share_of_nothing_is_whole() -> None:
    assert bulk_report.StrategyShare("fresh", 1, 0, 0).ratio == pytest.approx(1.0)
