"""When a provider is paused, and how it comes back."""

from __future__ import annotations

import pytest

from compaction.core import pausing
from compaction.core.pausing import OutageWatch, Phase
from compaction.errors import (
    ApiError,
    AuthError,
    BillingError,
    JobError,
    ModelNotFound,
    NoSummary,
    Overloaded,
    ProviderTimeout,
    RateLimited,
    Throttled,
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Overloaded(), True),
        (ProviderTimeout(), True),
        (ApiError(retryable=True), True),
        (ApiError(retryable=False), False),
        (RateLimited(), False),
        (Throttled(), False),
        (ModelNotFound(), False),
        (NoSummary(), False),
        (AuthError(), False),
    ],
)
def test_an_outage_is_a_provider_that_is_overloaded_broken_or_silent(error: JobError, expected: bool) -> None:
    assert pausing.is_outage(error) is expected


def test_eight_failures_in_a_row_of_three_jobs_are_an_outage() -> None:
    watch = OutageWatch()
    assert [watch.failed(f"job-{number % 3}", float(number)) for number in range(8)] == [False] * 7 + [True]


def test_one_session_that_fails_again_and_again_is_no_outage() -> None:
    watch = OutageWatch()
    assert not any(watch.failed(f"job-{number % 2}", float(number)) for number in range(50))


def test_an_answer_in_between_ends_the_row() -> None:
    watch = OutageWatch()
    for number in range(7):
        watch.failed(f"job-{number}", float(number))
    watch.answered()
    assert not watch.failed("job-8", 8.0)


def test_failures_that_lie_far_apart_are_no_outage() -> None:
    """Eight in a row, one every 20 s: 140 s in all."""
    watch = OutageWatch()
    assert not any(watch.failed(f"job-{number}", 20.0 * number) for number in range(12))


def test_probes_come_after_1_2_4_seconds_and_at_last_every_five_minutes() -> None:
    assert [pausing.probe_delay_seconds(1, failed) for failed in range(4)] == [1.0, 2.0, 4.0, 8.0]
    assert pausing.probe_delay_seconds(1, 50) == 300.0


def test_a_provider_that_fails_its_trials_is_probed_less_and_less_often() -> None:
    assert [pausing.probe_delay_seconds(trips, 0) for trips in (1, 2, 3)] == [1.0, 2.0, 4.0]


def test_probes_follow_the_operators_first_pause() -> None:
    assert pausing.probe_delay_seconds(1, 1, base_seconds=0.5) == 0.5


@pytest.mark.parametrize(
    ("error", "before", "trips", "expected"),
    [
        (AuthError(), "open", 1, False),  # the one that finds out fails with its code
        (BillingError(), "open", 1, False),
        (AuthError(), "paused", 1, True),  # was on its way when another one found out
        (AuthError(), "trial", 3, False),
        (AuthError(), "trial", 4, True),  # the trouble is known by now
        (Overloaded(), "open", 1, True),  # nobody's fault
        (Overloaded(), "trial", 2, True),
    ],
)
def test_who_fails_and_who_goes_back_to_the_queue(error: JobError, before: Phase, trips: int, expected: bool) -> None:
    assert pausing.gives_back(error, before, trips) is expected
