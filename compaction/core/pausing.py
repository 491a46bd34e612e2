"""When a provider is paused for everybody, and how it comes back.

    open ──auth, billing or outage──▶ paused ──probe answered──▶ trial ──a call is answered──▶ open
                                        ▲                          │
                                        └──────── the same again ──┘

A pause belongs to one credential at one provider: workers with another key go on. While it lasts, no job starts; on
trial, one job at a time does. An operator may end both at once.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

from compaction.core.jobs import BACKOFF_BASE_SECONDS
from compaction.errors import ApiError, JobError, Overloaded, ProviderTimeout

OUTAGE_FAILURES = 8  # in a row; with half of all calls failing, eight in a row come once in 256
OUTAGE_JOBS = 3  # a provider that fails three sessions is down; one that fails one may dislike that one
OUTAGE_SECONDS = 120.0  # the eight must be that close together
FIRST_PROBE_SHARE = 0.5  # of the first pause before a retry: a second; most trouble is over at once
MAX_PROBE_SECONDS = 300.0  # a person has to look: five minutes more do not matter
FAILED_TRIALS = 3  # so many jobs at most an outage may end; later ones go back to the queue and stay whole

Phase = Literal["open", "paused", "trial"]


def is_outage(error: JobError) -> bool:
    """Whether the error may mean that the provider is down: overloaded, broken or silent. A rate limit does not."""
    return isinstance(error, Overloaded | ProviderTimeout) or (isinstance(error, ApiError) and error.retryable)


def probe_delay_seconds(trips: int, failed_probes: int, base_seconds: float = BACKOFF_BASE_SECONDS) -> float:
    """How long until the next probe: 1, 2, 4 … 300 seconds; a provider that failed its trial starts further up.

    `base_seconds` is the operator's first pause before a retry.
    """
    exponent = min(max(trips - 1, 0) + failed_probes, 10)  # 2^10 seconds are over the longest delay
    return min(MAX_PROBE_SECONDS, FIRST_PROBE_SHARE * base_seconds * 2.0**exponent)


def gives_back(error: JobError, before: Phase, trips: int) -> bool:
    """Whether a job that failed while the provider was or became paused goes back to the queue as if it never ran.

    `before` is the phase that the failure found, `trips` how often in a row the provider has been paused, this time
    included. An outage is no job's fault. Of a refused key or an empty account the job that finds out tells its owner
    and fails (DESIGN §8); those that were on their way with it, and the later trials of a long trouble, stay whole.
    """
    return is_outage(error) or before == "paused" or trips > FAILED_TRIALS


class OutageWatch:
    """Failures in a row, as one process sees them."""

    def __init__(self) -> None:
        self._failures: deque[tuple[float, str]] = deque(maxlen=OUTAGE_FAILURES)

    def failed(self, job_id: str, now_seconds: float) -> bool:
        """Notes a failure; whether it is an outage now."""
        self._failures.append((now_seconds, job_id))
        close = now_seconds - self._failures[0][0] <= OUTAGE_SECONDS
        enough = len(self._failures) == OUTAGE_FAILURES and len({job for _, job in self._failures}) >= OUTAGE_JOBS
        return close and enough

    def answered(self) -> None:
        """The provider works."""
        self._failures.clear()
