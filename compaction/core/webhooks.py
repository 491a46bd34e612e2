"""Webhooks: which news there are, when a delivery is tried again, and what one attempt comes to.

A delivery is tried until the receiver answers with a 2xx, for three days. An endpoint that has only failed for some
days is switched off, and so is one that says that it is gone (410, as Standard Webhooks has it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Event = Literal["compaction.succeeded", "compaction.failed", "compaction.cancelled", "compaction.skipped"]
EVENTS: tuple[Event, ...] = ("compaction.succeeded", "compaction.failed", "compaction.cancelled", "compaction.skipped")
PING = "webhook.ping"  # asked for by the owner, and sent whatever the endpoint wants to hear
DisabledReason = Literal["owner", "failing", "gone"]
DeliveryStatus = Literal["pending", "delivered", "failed", "dropped"]

MAX_ENDPOINTS = 20  # of a tenant: each end of a job writes a row for each of them
GIVE_UP_SECONDS = 3 * 86_400.0  # three days: a receiver that is down over a weekend still hears of its jobs
BACKOFF_BASE_SECONDS = 5.0  # before the first retry, as in the schedule that Standard Webhooks recommends
BACKOFF_FACTOR = 4  # 5 s, 20 s, 80 s, 5 min, 21 min, 85 min, 5.7 h …
BACKOFF_CAP_SECONDS = 6 * 3_600.0  # … and then four times a day
RETRY_AFTER_CAP_SECONDS = 3_600.0  # a receiver's Retry-After is honoured up to an hour, as a provider's (DESIGN §8)
JITTER = 0.1  # so that what failed together does not come back together
DISABLE_DAYS = 5.0  # longer than a delivery lives, so that a long weekend switches nothing off
GONE = 410
DEFAULT_OVERLAP_SECONDS = 86_400  # a rotated secret signs beside the new one for a day
MAX_OVERLAP_SECONDS = 7 * 86_400


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one try came to: the receiver's status, or the code of what went wrong before there was one."""

    status: int | None = None
    problem: str | None = None
    retry_after_seconds: float | None = None  # what the receiver asks for

    @property
    def delivered(self) -> bool:
        """Whether the receiver took it."""
        return self.problem is None and self.status is not None and 200 <= self.status < 300  # noqa: PLR2004 - HTTP's class of success

    @property
    def error(self) -> str | None:
        """The code that stands in the log; None when it was taken."""
        return None if self.delivered else self.problem or "http_status"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a delivery stands when an attempt ends: tries so far, its age, and since when its endpoint only fails."""

    attempts: int
    age_seconds: float
    failing_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of the delivery, and of its endpoint when `disable` gives a reason."""

    status: DeliveryStatus
    delay_seconds: float = 0.0
    error: str | None = None
    http_status: int | None = None
    disable: DisabledReason | None = None


def is_over(standing: Standing) -> bool:
    """Whether a delivery is given up without another call: its three days are over, and calls have failed before.

    So a receiver that was down for days costs one look at each old delivery and not a timeout.
    """
    return standing.age_seconds > GIVE_UP_SECONDS and (standing.attempts > 1 or standing.failing_seconds > 0)


def judge(
    attempt: Attempt,
    standing: Standing,
    *,
    dice: float,
    base_seconds: float = BACKOFF_BASE_SECONDS,
    disable_seconds: float = DISABLE_DAYS * 86_400,
) -> Verdict:
    """What an attempt comes to. `dice` is a random number from 0 to 1."""
    if attempt.delivered:
        return Verdict("delivered", http_status=attempt.status)
    disable: DisabledReason | None = None
    if attempt.status == GONE:
        disable = "gone"
    elif standing.failing_seconds >= disable_seconds:
        disable = "failing"
    asked_seconds = min(attempt.retry_after_seconds or 0.0, RETRY_AFTER_CAP_SECONDS)
    delay_seconds = max(asked_seconds, retry_seconds(standing.attempts, dice, base_seconds))
    over = disable is not None or standing.age_seconds + delay_seconds > GIVE_UP_SECONDS
    status: DeliveryStatus = "failed" if over else "pending"
    return Verdict(status, 0.0 if over else delay_seconds, attempt.error, attempt.status, disable)


def retry_seconds(attempts: int, dice: float, base_seconds: float = BACKOFF_BASE_SECONDS) -> float:
    """The pause after the attempt of that number, counted from 1; `dice` from 0 to 1 spreads it."""
    exponent = min(max(attempts, 1) - 1, 20)  # 4^20 is far over the cap
    seconds = min(base_seconds * float(BACKOFF_FACTOR) ** exponent, BACKOFF_CAP_SECONDS)
    return seconds * (1 - JITTER + 2 * JITTER * dice)
