"""Jobs for waiting callers: made, claimed and ended through the store, as workers do, without any work between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from compaction.store import jobs, sessions, tenants
from compaction.store.engine import Database
from compaction.store.jobs import Finish, NewJob
from compaction.store.tenants import OPERATOR_TENANT

OWNER = "bench"
LEASE_SECONDS = 3600.0
BATCH = 200  # jobs made in one transaction
AT_ONCE = 8  # connections; the database is opened with as many
END = Finish(status="succeeded", was_compacted=False, reason="nothing_to_compact")


@dataclass(frozen=True, slots=True)
class Held:
    """A running job."""

    job_id: str
    token: int


async def running_jobs(database: Database, count: int, name: str) -> list[Held]:
    """`count` running jobs, each of a session of its own."""
    held: list[Held] = []
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        async with database.begin() as conn:
            tenant_id = await tenants.ensure_tenant(conn, OPERATOR_TENANT)
            made = []
            for number in numbers:
                row = await sessions.put(conn, tenant_id, f"{name}-{number}", model="claude-haiku-4-5")
                done = await jobs.enqueue(conn, NewJob(tenant_id=tenant_id, session_id=row.id, trigger="manual"))
                made.append(done.job.id)
        for job_id in made:
            async with database.connect() as conn:
                claim = await jobs.claim(conn, job_id, OWNER, LEASE_SECONDS)
            if claim is None:
                raise RuntimeError("a job that was just made cannot be claimed")
            held.append(Held(job_id, claim.token))
    return held


async def end_all(database: Database, held: Sequence[Held], jobs_per_second: float) -> dict[str, float]:
    """Ends the jobs at a steady pace; when each end was committed, on `time.perf_counter`."""
    ended: dict[str, float] = {}

    turns = asyncio.Semaphore(AT_ONCE)

    async def end(job: Held) -> None:
        async with turns, database.connect() as conn:
            if not await jobs.finish(conn, job.job_id, job.token, END):
                raise RuntimeError("a running job could not be ended")
            ended[job.job_id] = time.perf_counter()

    start = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number, job in enumerate(held):
            await asyncio.sleep(max(0.0, start + number / jobs_per_second - time.perf_counter()))
            group.create_task(end(job))
    return ended
