"""What becomes of an attempt."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from compaction.core.boundary import Boundary
from compaction.core.breaker import BreakerChange, BreakerState
from compaction.core.jobs import Trigger
from compaction.core.results import CompactionResult, Skipped
from compaction.errors import (
    ApiError,
    AttemptTimeout,
    AuthError,
    Internal,
    InvalidSession,
    JobError,
    NoSummary,
    Overloaded,
    RateLimited,
    Throttled,
)
from compaction.store.jobs import Claim, Finish, JobRow
from compaction.store.sessions import SessionRow
from worker import verdict

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def claim(trigger: Trigger = "auto", *, attempt: int = 1, age_seconds: float = 10.0) -> Claim:
    """A claimed job."""
    job = JobRow(
        id="01a22e22-7bd7-771e-b1d8-3ea2b2bffb7b",
        tenant_id=1,
        session_id=1,
        session_name="s",
        status="running",
        trigger=trigger,
        scope_kind="full",
        scope_uuid=None,
        instructions=None,
        strategy=None,
        fallback=None,
        force=False,
        token_gap=None,
        metadata={},
        priority=20,
        not_before=NOW,
        deadline_at=None,
        attempt=attempt,
        max_attempts=5,
        crashes=0,
        model_calls=0,
        coalesced=0,
        cancel_requested_at=None,
        covers_through_seq=4,
        progress={},
        was_compacted=None,
        reason=None,
        error=None,
        traceparent=None,
        created_at=NOW,
        started_at=NOW,
        ended_at=None,
    )
    session = SessionRow(1, 1, "s", "claude-haiku-4-5", None, {}, 4, 0, None, NOW, NOW)
    return Claim(
        job=job,
        token=7,
        covers_through_seq=4,
        paid_summary=None,
        session=session,
        tenant="t",
        breaker=BreakerState(),
        claimed_at=NOW,
        age_seconds=age_seconds,
    )


def result(*, under_threshold: bool = True) -> CompactionResult:
    """A finished compaction."""
    boundary = Boundary(uuid="b", trigger="auto", strategy="fresh", pre_tokens=9, covers_through_seq=4, job_id="j")
    return CompactionResult(
        job_id="j",
        strategy="fresh",
        boundary=boundary,
        pre_tokens=9,
        post_tokens=3,
        cost_usd=Decimal(0),
        covers_through_seq=4,
        prefix_hash="",
        under_threshold=under_threshold,
    )


def test_a_result_ends_the_job_and_closes_the_breaker() -> None:
    finish = verdict.on_outcome(claim().job, result(), [])
    assert (finish.status, finish.was_compacted, finish.breaker) == ("succeeded", True, BreakerChange("success"))
    assert finish.result is not None


def test_an_automatic_result_over_the_threshold_counts_as_a_failure() -> None:
    finish = verdict.on_outcome(claim().job, result(under_threshold=False), [])
    assert (finish.status, finish.breaker) == ("succeeded", BreakerChange("failure", "not_effective"))


def test_a_skip_is_a_success_with_a_reason_and_no_result() -> None:
    finish = verdict.on_outcome(claim().job, Skipped("below_threshold"), [])
    assert (finish.status, finish.was_compacted, finish.reason) == ("succeeded", False, "below_threshold")
    assert (finish.result, finish.breaker) == (None, None)


def test_a_passing_trouble_is_tried_again_and_does_not_count() -> None:
    """First retry after 2 s ± 20 %: with jitter 0.5 exactly 2 s."""
    finish = verdict.on_error(claim(), Overloaded(), [], jitter=0.5)
    assert (finish.status, finish.delay_seconds, finish.counted, finish.breaker) == ("retrying", 2.0, True, None)


def test_the_operator_sets_the_first_pause_and_each_further_one_doubles() -> None:
    """Base 3 s: the third attempt's failure waits 3 × 2² = 12 s."""
    finish = verdict.on_error(claim(attempt=3), Overloaded(), [], jitter=0.5, backoff_seconds=3.0)
    assert finish.delay_seconds == 12.0


def test_retry_after_of_the_provider_is_honoured() -> None:
    """Of an overload; of a rate limit up to a fifth more, so that those who were told the same come one by one."""
    assert verdict.on_error(claim(), Overloaded(retry_after_seconds=40), [], jitter=0.5).delay_seconds == 40.0
    assert verdict.on_error(claim(), RateLimited(retry_after_seconds=40), [], jitter=0.5).delay_seconds == 44.0


@pytest.mark.parametrize("error", [RateLimited(), Throttled()])
def test_a_rate_limit_uses_up_neither_the_attempt_nor_the_call(error: RateLimited) -> None:
    """Also in the last attempt. The first sleep is 2 s and up to a fifth more."""
    finish = verdict.on_error(claim(attempt=5), error, [], jitter=0.0)
    assert (finish.status, finish.outcome, finish.counted) == ("retrying", "snoozed", False)
    assert (finish.snoozed, finish.refused_calls, finish.delay_seconds) == (True, 1, 2.0)
    assert finish.breaker is None


def test_a_rate_limited_job_ends_with_its_deadline() -> None:
    finish = verdict.on_error(claim(age_seconds=24 * 3600.0 - 1), RateLimited(), [], jitter=0.0)
    assert (finish.status, finish.error) == (
        "failed",
        {"code": "rate_limited", "message": RateLimited().message, "retryable": True},
    )


def test_a_job_that_meets_a_paused_provider_is_given_back_whole() -> None:
    finish = verdict.given_back(AuthError(), [])
    assert (finish.status, finish.outcome, finish.counted, finish.refused_calls) == ("retrying", "released", False, 1)
    assert finish.error == {"code": "auth_error", "message": AuthError().message, "retryable": True}
    assert finish.breaker is None


@pytest.mark.parametrize(("attempt", "age_seconds"), [(5, 10.0), (1, 24 * 3600.0)])
def test_the_last_attempt_or_the_deadline_ends_it(attempt: int, age_seconds: float) -> None:
    finish = verdict.on_error(claim(attempt=attempt, age_seconds=age_seconds), ApiError(retryable=True), [], jitter=0.5)
    assert finish.status == "failed"
    assert finish.error == {"code": "api_error", "message": ApiError().message, "retryable": True}


def test_a_final_failure_of_an_automatic_job_counts_once() -> None:
    assert verdict.on_error(claim(), NoSummary(), [], jitter=0.5).breaker == BreakerChange("failure", "no_summary")
    assert verdict.on_error(claim("manual"), NoSummary(), [], jitter=0.5).breaker is None
    assert verdict.on_error(claim(), AuthError(), [], jitter=0.5).breaker is None


@pytest.mark.parametrize("error", [AttemptTimeout(), Internal(), InvalidSession()])
def test_a_failure_outside_the_pipeline_is_told_like_one_inside(error: JobError) -> None:
    calls = [("model_call", {"usage": {"input_tokens": 7, "output_tokens": 1}, "cost_usd": "0.1"})]
    finish = verdict.on_error(claim(attempt=2), error, calls, jitter=0.5)
    assert list(finish.events) == [
        *calls,
        (
            "tengu_compact_failed",
            {
                "trigger": "auto",
                "auto": True,
                "query_source": None,
                "attempt": 2,
                "code": error.code,
                "retryable": error.retryable,
                "scope": "full",
            },
        ),
    ]
    assert finish.usage is not None
    assert (finish.usage["input_tokens"], finish.usage["cost_usd"]) == (7, "0.1")


@pytest.mark.parametrize("name", ["tengu_compact_failed", "tengu_partial_compact_failed"])
def test_a_failure_that_the_pipeline_told_is_told_once(name: str) -> None:
    assert list(verdict.on_error(claim(), NoSummary(), [(name, {})], jitter=0.5).events) == [(name, {})]


def test_an_inline_job_ends_the_same_and_leaves_nothing_for_a_later_one() -> None:
    ended = Finish(
        status="succeeded",
        was_compacted=True,
        breaker=BreakerChange("success"),
        forget=(("runtime", "k"),),
        remember=(*verdict.MICRO_STATE, b"[]"),
        events=(("said", {}),),
    )
    assert verdict.ephemeral(ended) == Finish(status="succeeded", was_compacted=True, events=(("said", {}),))


def test_a_cancelled_attempt_ends_cancelled_and_counts_nothing() -> None:
    finish = verdict.cancelled([])
    assert (finish.status, finish.breaker) == ("cancelled", None)


def test_a_released_attempt_keeps_its_number() -> None:
    finish = verdict.released([("released", {})])
    assert (finish.status, finish.counted, finish.delay_seconds) == ("retrying", False, 0.0)


@pytest.mark.parametrize(("snoozes", "delay_seconds"), [(0, 2.0), (1, 4.0), (4, 32.0), (5, 60.0), (1_000, 60.0)])
def test_trouble_around_the_worker_uses_up_nothing_and_makes_the_job_wait_longer_each_time(
    snoozes: int, delay_seconds: float
) -> None:
    """2, 4 … up to a minute."""
    disturbed = claim(attempt=5)
    disturbed = replace(disturbed, job=replace(disturbed.job, snoozes=snoozes))
    finish = verdict.disturbed(disturbed, [("step", {})], jitter=0.0)
    assert (finish.status, finish.outcome, finish.counted, finish.snoozed) == ("retrying", "released", False, True)
    assert finish.delay_seconds == delay_seconds
    assert (finish.breaker, finish.refused_calls) == (None, 0)
