"""The circuit breaker of one session: after three failed automatic compactions in a row, automatic jobs are skipped.

    closed ──third failure in a row──▶ open ──cooldown over──▶ half open ──failure──▶ open
       ▲                                │                          │
       └── success under the threshold, or an operator ◀───────────┘

Half open is a matter of time, not of state: once the cooldown is over, automatic jobs are let through again, and
since a session never has two jobs running at once, one of them is the probe and decides. Without a cooldown (the
default) the breaker stays open until a compaction succeeds or an operator resets it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from compaction.core.jobs import Trigger
from compaction.errors import JobError, NotEffective

MAX_FAILURES = 3  # DESIGN §3: three failed automatic compactions in a row

Phase = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class BreakerState:
    """What is stored per session: failures in a row, when it opened (None: closed), the last failure's code."""

    failures: int = 0
    opened_at: datetime | None = None
    last_error_code: str | None = None


@dataclass(frozen=True, slots=True)
class BreakerChange:
    """What a finished job or an operator does to the breaker; `code` is the error's for a failure."""

    kind: Literal["success", "failure", "reset"]
    code: str | None = None


def after_failure(trigger: Trigger, error: JobError) -> BreakerChange | None:
    """The change of a job that failed for good, None when it does not count.

    Only automatic jobs count, and of their errors not those that say nothing about the session: cancelled, a dead
    worker, the provider's auth, billing and outage (`errors.JobError.counts_for_breaker`).
    """
    if trigger != "auto" or not error.counts_for_breaker:
        return None
    return BreakerChange("failure", error.code)


def after_success(trigger: Trigger, *, under_threshold: bool) -> BreakerChange | None:
    """The change of a job that compacted, None when it has none.

    An automatic one that leaves its session over the threshold would trigger again at once: it counts as a failure.
    A manual one that ends over the threshold changes nothing.
    """
    if under_threshold:
        return BreakerChange("success")
    return BreakerChange("failure", NotEffective.code) if trigger == "auto" else None


def applied(state: BreakerState, change: BreakerChange, now: datetime) -> BreakerState:
    """The state after `change`. A failure that finds the breaker open or opens it starts the cooldown anew."""
    if change.kind != "failure":
        return BreakerState()
    failures = state.failures + 1
    opened_at = now if failures >= MAX_FAILURES else state.opened_at
    return replace(state, failures=failures, opened_at=opened_at, last_error_code=change.code)


def phase(state: BreakerState, now: datetime, cooldown_seconds: float | None = None) -> Phase:
    """Where the breaker stands at `now`; without a cooldown an open breaker never becomes half open by itself."""
    if state.opened_at is None:
        return "closed"
    if cooldown_seconds is not None and now >= state.opened_at + timedelta(seconds=cooldown_seconds):
        return "half_open"
    return "open"


def is_open(state: BreakerState, now: datetime, cooldown_seconds: float | None = None) -> bool:
    """Whether automatic jobs are skipped at `now`."""
    return phase(state, now, cooldown_seconds) == "open"
