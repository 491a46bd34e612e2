"""What can be done to many jobs at once: run again, cancel, or close the breakers of their sessions. A step at a time.

One step touches STEP jobs at most, each in a transaction of its own, so that no request takes long and no lock is held
for others. What was done is in the audit log whatever comes between; the page offers to go on with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from api.dashboard.job_choice import JobChoice
from api.retrying import again
from api.services import Services
from compaction.errors import CompactdError, TooManyRequests, Unavailable
from compaction.store import breakers, job_search, jobs
from compaction.store.job_search import Counted, FoundJob, JobFilter
from compaction.store.reach import Reach

Action = Literal["retry", "cancel", "reset"]

STEP = 500  # jobs of one step: two seconds on a slow disk
SAMPLE = 10  # shown before one confirms
LOOKS = 10  # at SCAN jobs each, before a step gives up finding more


@dataclass(slots=True)
class Outcome:
    """What a step did. `problem` is why it stopped early, `refused` counts jobs that refused by themselves."""

    done: int = 0
    refused: int = 0
    problem: str | None = None
    codes: dict[str, int] = field(default_factory=dict)


def wanted(choice: JobChoice, action: Action) -> JobFilter:
    """The jobs of the choice that the deed can change."""
    if action == "retry":
        return choice.filter(open_only=True)
    return choice.filter(live_only=True) if action == "cancel" else choice.filter(blocked_only=True)


async def dry_run(held: Services, reach: Reach, choice: JobChoice, action: Action) -> Counted:
    """What the deed would change; nothing is changed."""
    async with held.database.connect() as conn:
        return await job_search.count(conn, reach, wanted(choice, action))


async def sample(held: Services, reach: Reach, choice: JobChoice, action: Action, limit: int) -> list[FoundJob]:
    """The next jobs that the deed would change, newest first."""
    found: list[FoundJob] = []
    cursor: str | None = None
    async with held.database.connect() as conn:
        for _ in range(LOOKS):
            left = limit - len(found)
            listed = await job_search.search(conn, reach, wanted(choice, action), limit=left, cursor=cursor)
            found += listed.jobs
            cursor = listed.cursor
            if len(found) >= limit or cursor is None:
                break
    return found


async def step(held: Services, reach: Reach, choice: JobChoice, action: Action, *, with_breakers: bool) -> Outcome:
    """Does it to the next STEP jobs."""
    outcome = Outcome()
    closed: set[int] = set()
    for job in await sample(held, reach, choice, action, STEP):
        try:
            if (action == "reset" or with_breakers) and job.session_id not in closed:
                closed.add(job.session_id)
                await _reset(held, job)
            outcome.done += await _do(held, job, action)
        except (TooManyRequests, Unavailable) as error:  # the next one would hear the same
            outcome.problem = error.message
            break
        except CompactdError as error:
            outcome.refused += 1
            outcome.codes[error.code] = outcome.codes.get(error.code, 0) + 1
    return outcome


async def _do(held: Services, job: FoundJob, action: Action) -> int:
    if action == "reset":
        return 1
    async with held.database.connect() as conn:
        if action == "cancel":
            return int(await jobs.cancel(conn, job.tenant_id, job.id) is not None)
        old = await jobs.get(conn, job.tenant_id, job.id)
        if old is None:  # retention took it away
            return 0
        made = await again(conn, old, held.settings.caps)
    held.enqueued(made)
    return 1


async def _reset(held: Services, job: FoundJob) -> None:
    async with held.database.connect() as conn:
        await breakers.reset(conn, job.session_id)
