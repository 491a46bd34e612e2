"""What becomes of an attempt: decided here, purely, as one frozen `Finish`; `store.jobs.finish` alone applies it."""

from __future__ import annotations

from dataclasses import replace

from compaction import events as pipeline_events
from compaction.core import breaker, cleanup, jobs, jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.results import CompactionResult, Outcome
from compaction.errors import Cancelled, JobError
from compaction.store.jobs import Claim, Finish, JobRow
from compaction.store.results import encode_result
from compaction.task import Task
from worker import spending

MAX_REMEMBERED = 10_000  # ids of cleared calls; ten times the longest real session

Events = list[tuple[str, dict[str, Json]]]


# Kind and key under which cleared calls are remembered; no producer can write this kind.
MICRO_STATE = ("compactd", "micro_compaction")


def on_outcome(job: JobRow, outcome: Outcome, events: Events, task: Task | None = None) -> Finish:
    """A finished pipeline: succeeded, with a result or with the reason why nothing was done.

    `task` tells what the session's run-time state must forget after the compaction, and what was cleared before.
    """
    if not isinstance(outcome, CompactionResult):
        return Finish(
            status="succeeded",
            outcome="skipped",
            was_compacted=False,
            reason=outcome.reason,
            usage=spending.of_attempt(events),
            events=tuple(events),
        )
    return Finish(
        status="succeeded",
        outcome="succeeded",
        was_compacted=True,
        result=encode_result(outcome),
        usage=spending.of_attempt(events),
        forget=() if task is None or not task.has_runtime_state else _forgotten(task, outcome),
        remember=_remembered(task, outcome),
        breaker=breaker.after_success(job.trigger, under_threshold=outcome.under_threshold),
        events=tuple(events),
    )


def _forgotten(task: Task, result: CompactionResult) -> tuple[cleanup.Entry, ...]:
    steps = cleanup.steps_for(task.facts.query_source, result.strategy)
    return (*cleanup.entries(steps), MICRO_STATE) if steps else ()


def _remembered(task: Task | None, result: CompactionResult) -> tuple[str, str, bytes] | None:
    """The calls whose results were cleared, now and before, so that they are not counted again."""
    if not result.cleared_ids:
        return None
    before = sorted(task.cleared_ids) if task is not None else []
    return (*MICRO_STATE, jsonbytes.encode([*before, *result.cleared_ids][-MAX_REMEMBERED:]))


def cancelled(events: Events) -> Finish:
    """The owner cancelled the job while it ran."""
    error = Cancelled()
    report: dict[str, Json] = {"code": error.code, "message": error.message, "retryable": False}
    usage = spending.of_attempt(events)
    return Finish(status="cancelled", outcome="cancelled", error=report, usage=usage, events=tuple(events))


def ephemeral(finish: Finish) -> Finish:
    """The same end for an inline job: its session has no breaker, and nothing in it is for a later job to meet."""
    return replace(finish, breaker=None, forget=(), remember=None)


def on_error(
    claim: Claim, error: JobError, events: Events, *, jitter: float, backoff_seconds: float = jobs.BACKOFF_BASE_SECONDS
) -> Finish:
    """A failed pipeline: again later, or failed for good; only then it counts for the breaker.

    `backoff_seconds` is the wait before the first retry; each further one waits twice as long. A job that a rate limit
    stopped only waits: it keeps its attempt, and the refused call counts for nothing.
    """
    report = _report(error)
    told, usage = _told(claim, error, events), spending.of_attempt(events)
    decision = _decided(claim, error, jitter, backoff_seconds)
    if isinstance(decision, jobs.Retry):
        return Finish(
            status="retrying",
            outcome="retrying" if decision.counted else "snoozed",
            delay_seconds=decision.delay_seconds,
            counted=decision.counted,
            snoozed=not decision.counted,
            refused_calls=0 if decision.counted else 1,
            error=report,
            usage=usage,
            events=told,
        )
    return Finish(
        status="failed",
        outcome="failed",
        error=report,
        breaker=breaker.after_failure(claim.job.trigger, error),
        usage=usage,
        events=told,
    )


def _told(claim: Claim, error: JobError, events: Events) -> tuple[tuple[str, dict[str, Json]], ...]:
    """The attempt's events with that of its failure: the pipeline tells of its own failures, and of no other ones."""
    if any(name in jobs.FAILED_EVENTS.values() for name, _ in events):
        return tuple(events)
    job = claim.job
    failed = pipeline_events.failed_outside(
        error,
        trigger=job.trigger,
        scope=job.scope.kind,
        query_source=claim.session.query_source,
        attempt=job.attempt,
    )
    return (*events, failed)


def given_back(error: JobError, events: Events) -> Finish:
    """The provider is paused for everybody: the job waits for its return as if it had not run."""
    return Finish(
        status="retrying",
        outcome="released",
        counted=False,
        refused_calls=1,
        error=_report(error) | {"retryable": True},
        usage=spending.of_attempt(events),
        events=tuple(events),
    )


def _report(error: JobError) -> dict[str, Json]:
    return {"code": error.code, "message": error.message, "retryable": error.retryable}


def _decided(claim: Claim, error: JobError, jitter: float, base_seconds: float) -> jobs.Retry | jobs.GiveUp:
    if error.snoozes:
        return jobs.after_snooze(
            snoozes=claim.job.snoozes,
            age_seconds=claim.age_seconds,
            jitter=jitter,
            retry_after_seconds=error.retry_after_seconds,
            base_seconds=base_seconds,
        )
    return jobs.after_failure(
        retryable=error.retryable,
        attempt=claim.job.attempt,
        max_attempts=claim.job.max_attempts,
        age_seconds=claim.age_seconds,
        jitter=jitter,
        retry_after_seconds=error.retry_after_seconds,
        base_seconds=base_seconds,
    )


def released(events: Events) -> Finish:
    """The worker stops: the job waits for another try and keeps its attempt."""
    return Finish(
        status="retrying",
        outcome="released",
        counted=False,
        usage=spending.of_attempt(events),
        events=tuple(events),
    )


def disturbed(
    claim: Claim, events: Events, *, jitter: float, backoff_seconds: float = jobs.BACKOFF_BASE_SECONDS
) -> Finish:
    """Something around the worker is away (Postgres, Redis, the network): the job keeps its attempt and waits.

    Each time it waits twice as long, up to a minute. Its deadline bounds that, and the eight model calls of a job.
    """
    return Finish(
        status="retrying",
        outcome="released",
        delay_seconds=jobs.snooze_seconds(claim.job.snoozes, jitter, base_seconds=backoff_seconds),
        counted=False,
        snoozed=True,
        usage=spending.of_attempt(events),
        events=tuple(events),
    )
