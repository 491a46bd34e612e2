"""So many requests at once, and after that as many as flow in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.core.token_bucket import Bucket, draw, flow_of

SIXTY = flow_of(60)  # one a second, ten at once


def test_a_full_bucket_gives_a_sixth_of_the_minute_at_once_and_then_waits() -> None:
    bucket, outcomes = None, []
    for _ in range(12):
        bucket, outcome = draw(bucket, 100.0, SIXTY)
        outcomes.append(outcome)
    assert [one.allowed for one in outcomes] == [True] * 10 + [False] * 2
    outcome = outcomes[-1]
    assert (outcome.left, outcome.wait_seconds, outcome.full_seconds) == (0, 1.0, 10.0)


def test_what_flows_in_may_be_used() -> None:
    bucket = Bucket(0.0, 100.0)
    half, outcome = draw(bucket, 100.5, SIXTY)
    assert (outcome.allowed, outcome.wait_seconds) == (False, 0.5)
    _, outcome = draw(half, 101.0, SIXTY)
    assert outcome.allowed


def test_a_bucket_never_holds_more_than_it_can() -> None:
    _, outcome = draw(Bucket(3.0, 100.0), 10**9, SIXTY)
    assert outcome.left == 9


def test_a_clock_that_goes_back_gives_and_takes_nothing() -> None:
    bucket, outcome = draw(Bucket(5.0, 100.0), 50.0, SIXTY)
    assert (outcome.left, bucket.level) == (4, 4.0)


def test_even_the_smallest_rate_lets_one_through() -> None:
    bucket, first = draw(None, 0.0, flow_of(1))
    _, second = draw(bucket, 0.0, flow_of(1))
    assert (first.allowed, second.allowed) == (True, False)
    assert second.wait_seconds == pytest.approx(60.0)


@given(st.integers(1, 6_000), st.lists(st.floats(0, 30), min_size=1, max_size=200))
def test_no_minute_sees_more_than_its_rate_and_one_bucket(per_minute: int, pauses: list[float]) -> None:
    flow, bucket, now = flow_of(per_minute), None, 0.0
    granted: list[float] = []
    for pause in pauses:
        now += pause
        bucket, outcome = draw(bucket, now, flow)
        if outcome.allowed:
            granted.append(now)
    for end in granted:
        within = sum(1 for moment in granted if end - 60 < moment <= end)
        assert within <= per_minute + flow.capacity + 1e-6
