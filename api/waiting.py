"""Waiting for a job's end: `Prefer: wait=N` (RFC 7240) and the hint when to ask again."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from api.looks import Seen
from api.services import Services
from compaction.store.job_rows import JobRow

POLL_SECONDS = 1  # how soon a client that does not wait should ask again
MAX_POLL_SECONDS = 60  # for a job that waits for its next attempt
LOOK_UP_SECONDS = 10.0  # callers who hang up and come again must not pile up; two thousand cost a hundredth of a core

_WAIT = re.compile(r'(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?(?:$|[,;\s])', re.IGNORECASE)


def preferred_wait_seconds(prefer: str | None, longest_seconds: float) -> int | None:
    """The whole seconds that the caller wants to wait, cut to what this server allows; None when it did not ask."""
    match = _WAIT.search(prefer or "")
    return min(int(match[1]), int(longest_seconds)) if match else None


def retry_after_seconds(row: JobRow) -> int:
    """When asking again makes sense: soon, or when the next attempt may begin."""
    if row.status == "running":
        return POLL_SECONDS
    ahead = (row.not_before - datetime.now(UTC)).total_seconds()
    return int(max(POLL_SECONDS, min(MAX_POLL_SECONDS, ahead)))


async def job_at_end(  # noqa: PLR0913 - what it waits for, how long, and for whom
    held: Services,
    job_id: str,
    read: Callable[[], Awaitable[Seen]],
    seconds: float,
    is_gone: Callable[[], Awaitable[bool]],
    *,
    look_up_seconds: float = LOOK_UP_SECONDS,
) -> Seen:
    """The job as it is when it has ended, when `seconds` are over, or when this server is asked to stop.

    Every now and then it is asked whether the caller `is_gone`: nobody waits for those who have hung up.
    """
    until = time.monotonic() + seconds
    with held.listener.watch(job_id) as watch:  # listens before the first look: an end in between is heard
        while True:
            seen = await read()
            while True:
                left_seconds = until - time.monotonic()
                if seen.row.done or left_seconds <= 0 or held.stopping.is_set():
                    return seen
                if await watch.wait(min(left_seconds, look_up_seconds)):
                    break
                if await is_gone():
                    return seen
