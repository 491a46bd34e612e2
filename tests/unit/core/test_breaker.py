"""The breaker of one session, step by step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from compaction import errors
from compaction.core.breaker import (
    BreakerChange,
    BreakerState,
    after_failure,
    after_success,
    applied,
    is_open,
    phase,
)
from compaction.core.jobs import Trigger

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
FAILURE = BreakerChange("failure", "no_summary")


def after(*changes: BreakerChange, state: BreakerState | None = None) -> BreakerState:
    state = state or BreakerState()
    for change in changes:
        state = applied(state, change, NOW)
    return state


def test_three_failures_in_a_row_open_it() -> None:
    assert after(FAILURE, FAILURE) == BreakerState(2, None, "no_summary")
    assert after(FAILURE, FAILURE, BreakerChange("failure", "refusal")) == BreakerState(3, NOW, "refusal")


def test_a_success_in_between_starts_the_count_anew() -> None:
    assert after(FAILURE, FAILURE, BreakerChange("success"), FAILURE).failures == 1


@pytest.mark.parametrize("kind", ["success", "reset"])
def test_a_success_or_an_operator_closes_it(kind: str) -> None:
    change = BreakerChange("success" if kind == "success" else "reset")
    assert after(FAILURE, FAILURE, FAILURE, change) == BreakerState()


def test_a_failed_probe_starts_the_cooldown_anew() -> None:
    later = NOW + timedelta(hours=1)
    state = applied(after(FAILURE, FAILURE, FAILURE), FAILURE, later)
    assert state == BreakerState(4, later, "no_summary")


def test_it_stays_open_for_ever_without_a_cooldown() -> None:
    state = after(FAILURE, FAILURE, FAILURE)
    assert phase(state, NOW + timedelta(days=365)) == "open"
    assert is_open(state, NOW + timedelta(days=365))


@pytest.mark.parametrize(("seconds", "expected"), [(0, "open"), (59, "open"), (60, "half_open"), (6_000, "half_open")])
def test_a_cooldown_lets_a_probe_through(seconds: int, expected: str) -> None:
    state = after(FAILURE, FAILURE, FAILURE)
    now = NOW + timedelta(seconds=seconds)
    assert phase(state, now, 60.0) == expected
    assert is_open(state, now, 60.0) == (expected == "open")


def test_a_closed_one_is_closed_whatever_the_cooldown() -> None:
    assert phase(after(FAILURE, FAILURE), NOW, 0.0) == "closed"
    assert not is_open(after(FAILURE, FAILURE), NOW)


@pytest.mark.parametrize(
    "error",
    [
        errors.NoSummary(),
        errors.Refusal(),
        errors.SummaryTruncated(),
        errors.NotEffective(),
        errors.PromptTooLong(),
        errors.ApiError(),
        errors.AttemptTimeout(),
        errors.Internal(),
    ],
    ids=lambda error: error.code,
)
def test_an_automatic_failure_counts(error: errors.JobError) -> None:
    assert after_failure("auto", error) == BreakerChange("failure", error.code)


@pytest.mark.parametrize("trigger", ["manual", "reactive", "bulk"])
def test_failures_of_other_triggers_never_count(trigger: Trigger) -> None:
    assert after_failure(trigger, errors.NoSummary()) is None


@pytest.mark.parametrize(
    "error",
    [
        errors.Cancelled(),
        errors.WorkerLost(),
        errors.AuthError(),
        errors.BillingError(),
        errors.Overloaded(),
        errors.ApiError(retryable=True),  # 5xx, or no connection
        errors.ProviderTimeout(),
        errors.RateLimited(),
    ],
    ids=lambda error: error.code,
)
def test_failures_that_say_nothing_about_the_session_never_count(error: errors.JobError) -> None:
    assert after_failure("auto", error) is None


@pytest.mark.parametrize("trigger", ["auto", "manual", "reactive", "bulk"])
def test_every_compaction_that_ends_under_the_threshold_closes_it(trigger: Trigger) -> None:
    assert after_success(trigger, under_threshold=True) == BreakerChange("success")


def test_an_automatic_one_that_stays_over_the_threshold_counts_as_a_failure() -> None:
    assert after_success("auto", under_threshold=False) == BreakerChange("failure", "not_effective")


@pytest.mark.parametrize("trigger", ["manual", "reactive", "bulk"])
def test_another_one_that_stays_over_the_threshold_changes_nothing(trigger: Trigger) -> None:
    assert after_success(trigger, under_threshold=False) is None
