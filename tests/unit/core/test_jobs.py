"""A job's states and how long a failed one waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.core import jobs
from compaction.core.jobs import (
    GiveUp,
    Retry,
    after_failure,
    after_snooze,
    backoff_seconds,
    may_join,
    snooze_seconds,
)


def test_the_states_are_waiting_active_or_terminal() -> None:
    assert {*jobs.WAITING, *jobs.ACTIVE, *jobs.TERMINAL} == set(jobs.STATUSES)
    assert {*jobs.LIVE} == {*jobs.WAITING, *jobs.ACTIVE}


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 2.0), (2, 4.0), (3, 8.0), (4, 16.0), (9, 512.0), (10, 600.0)])
def test_the_wait_doubles_up_to_ten_minutes(attempt: int, seconds: float) -> None:
    """Base 2 s; jitter 0.5 is none."""
    assert backoff_seconds(attempt, 0.5) == seconds


def test_jitter_is_a_fifth_either_way() -> None:
    assert backoff_seconds(1, 0.0) == pytest.approx(1.6)
    assert backoff_seconds(1, 1.0) == pytest.approx(2.4)


def test_retry_after_is_a_minimum_and_honoured_up_to_an_hour() -> None:
    assert backoff_seconds(1, 0.5, 30.0) == 30.0
    assert backoff_seconds(1, 0.5, 1.0) == 2.0
    assert backoff_seconds(1, 0.5, 7_200.0) == 3_600.0
    assert backoff_seconds(1, 0.5, -5.0) == 2.0


@given(st.integers(-3, 10_000), st.floats(0, 1, exclude_max=True))
def test_no_attempt_waits_longer_than_the_cap_and_its_jitter(attempt: int, jitter: float) -> None:
    assert 0 < backoff_seconds(attempt, jitter) <= 600 * 1.2


def failed(*, retryable: bool = True, attempt: int = 1, age_seconds: float = 0.0) -> Retry | GiveUp:
    """The decision on a job that may be tried five times."""
    return after_failure(retryable=retryable, attempt=attempt, max_attempts=5, age_seconds=age_seconds, jitter=0.5)


def test_passing_trouble_is_tried_again() -> None:
    assert failed() == Retry(2.0)


def test_final_trouble_the_fifth_attempt_and_the_deadline_end_it() -> None:
    assert failed(retryable=False) == GiveUp()
    assert failed(attempt=5) == GiveUp()
    assert failed(age_seconds=24 * 3600 - 1) == GiveUp()


def test_a_throttled_job_sleeps_2_4_8_seconds_and_a_minute_at_most() -> None:
    assert [snooze_seconds(number, 0.0) for number in range(4)] == [2.0, 4.0, 8.0, 16.0]
    assert snooze_seconds(10**6, 0.0) == 60.0


def test_a_throttled_job_sleeps_as_long_as_it_was_told_and_up_to_a_fifth_longer() -> None:
    assert snooze_seconds(0, 0.0, 30.0) == 30.0
    assert snooze_seconds(0, 1.0, 30.0) == pytest.approx(36.0)
    assert snooze_seconds(0, 0.0, 7_200.0) == 3_600.0


def test_a_snooze_uses_up_no_attempt_and_ends_with_the_deadline() -> None:
    assert after_snooze(snoozes=0, age_seconds=0.0, jitter=0.0) == Retry(2.0, counted=False)
    assert after_snooze(snoozes=0, age_seconds=24 * 3600 - 1, jitter=0.0) == GiveUp()


def test_a_job_that_lost_no_worker_may_join_any() -> None:
    assert may_join(0, suspects=50, most_crashes=2)


def test_sixteen_jobs_that_lost_one_worker_may_be_together() -> None:
    assert may_join(1, suspects=15, most_crashes=1)
    assert not may_join(1, suspects=16, most_crashes=1)


def test_a_job_that_the_next_loss_would_fail_is_alone_among_suspects() -> None:
    assert may_join(2, suspects=0, most_crashes=0)
    assert not may_join(2, suspects=1, most_crashes=1)
    assert not may_join(1, suspects=1, most_crashes=2)
