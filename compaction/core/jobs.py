"""A job: its states, what may follow what, and how long a failed one waits. `docs/state_machine.md` draws it.

    queued ──claim──▶ running ──commit──▶ succeeded | failed
                        │ ▲  └─cancel──▶ cancelled
             retry or   │ │ claim
             release    ▼ │
                      retrying ──cancel──▶ cancelled          queued ──cancel──▶ cancelled

`queued` has never started; `retrying` has, keeps its snapshot (covers_through_seq) and waits for its next attempt.
A session has at most one active job (running or retrying) and one waiting job (queued).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Status = Literal["queued", "running", "retrying", "succeeded", "failed", "cancelled"]
Trigger = Literal["auto", "manual", "reactive", "bulk"]
ScopeKind = Literal["full", "up_to", "from"]
StrategyName = Literal["microcompact", "session_memory", "shared_prefix", "fresh", "extractive"]

STATUSES: tuple[Status, ...] = get_args(Status)
TRIGGERS: tuple[Trigger, ...] = get_args(Trigger)
WAITING: tuple[Status, ...] = ("queued",)
ACTIVE: tuple[Status, ...] = ("running", "retrying")
LIVE: tuple[Status, ...] = WAITING + ACTIVE
TERMINAL: tuple[Status, ...] = ("succeeded", "failed", "cancelled")

# Lower runs first (DESIGN §4: manual and reactive before auto before bulk). Steps of ten leave room between.
PRIORITIES: dict[Trigger, int] = {"reactive": 10, "manual": 10, "auto": 20, "bulk": 30}
# When two enqueues meet in one waiting job, the higher-ranked trigger's parameters win.
RANKS: dict[Trigger, int] = {"bulk": 0, "auto": 1, "manual": 2, "reactive": 3}

# DESIGN §3: the event of a failed attempt; a job for a part of its session has its own.
FAILED_EVENTS: dict[ScopeKind, str] = {
    "full": "tengu_compact_failed",
    "up_to": "tengu_partial_compact_failed",
    "from": "tengu_partial_compact_failed",
}

MAX_ATTEMPTS = 5  # DESIGN §8
MAX_CRASHES = 3  # a job that killed its worker so often is poison (facts/queue.md §3.2)
MAX_SUSPECTS = 16  # jobs that lost a worker, at once in one: about the root of 300 slots, so that few are lost again
MAX_MODEL_CALLS = 8  # DESIGN §8: all attempts together
MAX_JOB_AGE_SECONDS = 24 * 3600  # DESIGN §8: the deadline
MAX_RETRY_AFTER_SECONDS = 3600  # DESIGN §8: Retry-After is honoured up to an hour
SELF_FENCE_SECONDS = 45  # facts/queue.md §3.1: without a beat for so long a worker gives its jobs up itself
BACKOFF_BASE_SECONDS = 2.0  # first retry after about two seconds: most overloads of the API are that short
BACKOFF_CAP_SECONDS = 600.0  # ten minutes; with five attempts the sum stays far below the deadline
JITTER = 0.2  # ± a fifth, so that jobs that failed together do not come back together
SNOOZE_CAP_SECONDS = 60.0  # limits are counted by the minute: after one there is room again


@dataclass(frozen=True, slots=True)
class Scope:
    """Which part of the session a job compacts; `uuid` names the message for up_to and from."""

    kind: ScopeKind = "full"
    uuid: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """The job runs again after `delay_seconds`; `counted` says whether this attempt used up one of the five."""

    delay_seconds: float
    counted: bool = True


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The job has failed for good."""


def may_join(crashes: int, *, suspects: int, most_crashes: int) -> bool:
    """Whether a job that lost `crashes` workers may start in a worker with so many `suspects` (jobs that lost one too).

    `most_crashes` is the most that one of those has lost. A job that would fail with the next loss runs without other
    suspects: whoever else took its worker down must not be able to make it fail.
    """
    if crashes == 0:
        return True
    last_chance = MAX_CRASHES - 1
    if crashes >= last_chance or most_crashes >= last_chance:
        return suspects == 0
    return suspects < MAX_SUSPECTS


def backoff_seconds(
    attempt: int,
    jitter: float,
    retry_after_seconds: float | None = None,
    *,
    base_seconds: float = BACKOFF_BASE_SECONDS,
) -> float:
    """How long to wait after attempt number `attempt` (from 1) failed: base × 2^(attempt−1), capped, ± JITTER.

    `jitter` is a number in [0, 1) drawn by the caller. A provider's Retry-After is a minimum, honoured up to an hour.
    """
    exponent = min(max(attempt, 1) - 1, 10)  # 2^10 × the usual base is over the cap already
    delay = min(BACKOFF_CAP_SECONDS, base_seconds * 2.0**exponent) * (1 - JITTER + 2 * JITTER * jitter)
    asked = min(max(retry_after_seconds or 0.0, 0.0), MAX_RETRY_AFTER_SECONDS)
    return max(delay, asked)


def snooze_seconds(
    snoozes: int,
    jitter: float,
    retry_after_seconds: float | None = None,
    *,
    base_seconds: float = BACKOFF_BASE_SECONDS,
) -> float:
    """How long a job sleeps that only has to wait, for the time number `snoozes` + 1: what it was told, or 2, 4 … 60.

    Never less than it was told, and up to a fifth more, so that those who were told the same do not come together.
    """
    usual = min(SNOOZE_CAP_SECONDS, base_seconds * 2.0 ** min(max(snoozes, 0), 10))  # 2^10 is over the cap already
    asked = min(max(retry_after_seconds or 0.0, 0.0), MAX_RETRY_AFTER_SECONDS)
    return max(usual, asked) * (1 + JITTER * jitter)


def after_snooze(
    *,
    snoozes: int,
    age_seconds: float,
    jitter: float,
    retry_after_seconds: float | None = None,
    base_seconds: float = BACKOFF_BASE_SECONDS,
) -> Retry | GiveUp:
    """What becomes of a job that a rate limit stopped: it waits and keeps its attempt, until its deadline is near."""
    delay = snooze_seconds(snoozes, jitter, retry_after_seconds, base_seconds=base_seconds)
    return GiveUp() if age_seconds + delay > MAX_JOB_AGE_SECONDS else Retry(delay, counted=False)


def after_failure(  # noqa: PLR0913 - the facts of one failed attempt
    *,
    retryable: bool,
    attempt: int,
    max_attempts: int,
    age_seconds: float,
    jitter: float,
    retry_after_seconds: float | None = None,
    base_seconds: float = BACKOFF_BASE_SECONDS,
) -> Retry | GiveUp:
    """What becomes of a job whose attempt failed: again later, or failed (not retryable, attempts, deadline)."""
    if not retryable or attempt >= max_attempts:
        return GiveUp()
    delay = backoff_seconds(attempt, jitter, retry_after_seconds, base_seconds=base_seconds)
    if age_seconds + delay > MAX_JOB_AGE_SECONDS:
        return GiveUp()
    return Retry(delay)
