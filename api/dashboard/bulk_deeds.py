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
from compaction.store.job_search import FoundJob, FoundPage, JobFilter
from compaction.store.reach import Reach

Action = Literal["retry", "cancel", "reset"]

COUNTED = 10_000  # jobs that a dry run counts: 100 ms; above it the page says "more than"
STEP = 500  # jobs of one step: two seconds on a slow disk
SAMPLE = 10  # shown before one confirms


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


async def dry_run(held: Services, reach: Reach, choice: JobChoice, action: Action) -> FoundPage:
    """What the deed would change, up to COUNTED jobs; nothing is changed."""
    async with held.database.connect() as conn:
        return await job_search.search(conn, reach, wanted(choice, action), limit=COUNTED)


async def step(held: Services, reach: Reach, choice: JobChoice, action: Action, *, with_breakers: bool) -> Outcome:
    """Does it to the next STEP jobs."""
    async with held.database.connect() as conn:
        listed = await job_search.search(conn, reach, wanted(choice, action), limit=STEP)
    outcome = Outcome()
    closed: set[int] = set()
    for job in listed.jobs:
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
