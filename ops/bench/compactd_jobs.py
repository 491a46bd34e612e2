"""compactd as a contender: sessions in its store, jobs enqueued as the API does it, one real worker process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from compaction.core import jsonbytes
from compaction.core.jobs import Trigger
from compaction.store import jobs as job_rows
from compaction.store import sessions as session_rows
from compaction.store import tenants
from compaction.store.engine import Database
from compaction.store.jobs import NewJob
from compaction.store.sessions import NewMessage
from ops.bench.load import Load
from ops.bench.meter import Meter
from ops.bench.provider import most_in_flight
from ops.bench.rig import ROOT, Rig
from ops.bench.transcripts import transcript
from ops.bench.trial import BYTES, KINDS, MESSAGES, PATIENCE_SECONDS, PAUSE_SECONDS, START_SECONDS, Scenario, Trial
from ops.embedded.processes import Command, Process
from ops.embedded.waiting import wait_until
from worker.dispatch import Doorbell

MODEL = "claude-haiku-4-5"
TENANT = "bench"
SLOTS = 300
TOGETHER = 8  # enqueues under way at once, as many as connections

_LEFT = "SELECT count(*) FROM jobs WHERE status IN ('queued', 'retrying', 'running')"
_TOLD = """
    SELECT count(*) FILTER (WHERE status = 'succeeded' AND was_compacted),
           extract(epoch FROM max(ended_at) - min(created_at)),
           extract(epoch FROM max(ended_at) - min(started_at)),
           sum(attempt + crashes) - count(*)
    FROM jobs WHERE id = ANY(%s)
"""


class CompactdJobs:
    """One worker that stays for all runs; each run has sessions of its own."""

    name = "compactd"

    def __init__(self, rig: Rig, process: Process, trigger: Trigger) -> None:
        self._rig = rig
        self._pid = process.pid
        self._trigger: Trigger = trigger
        self._kinds = [
            [new_message(body) for body in transcript(seed, messages=MESSAGES, size_bytes=BYTES)]
            for seed in range(1, KINDS + 1)
        ]
        self._sessions = 0
        self._idle_bytes = Meter(self._pid).rss_bytes()

    def play(self, scenario: Scenario) -> Trial:
        """Stores sessions, enqueues all jobs at once, waits for the last one."""
        self._rig.provider.play(latency_seconds=scenario.latency_seconds, deltas=scenario.deltas)
        return asyncio.run(self._play(scenario))

    async def _play(self, scenario: Scenario) -> Trial:
        database = Database(self._rig.database_url, pool_size=TOGETHER)
        bell = Doorbell(self._rig.redis_url)
        try:
            orders = await self._orders(database, scenario.jobs)
            await asyncio.sleep(PAUSE_SECONDS)
            load = Load.begin(self._pid, self._idle_bytes)
            ids = await _enqueued(database, bell, orders)
            await asyncio.to_thread(self._wait)
            used = load.end()
        finally:
            await bell.aclose()
            await database.close()
        ended, wall, work, again = self._asked(_TOLD, ids)
        return Trial(
            jobs=scenario.jobs,
            ended=ended,
            wall_seconds=float(wall),
            work_seconds=float(work),
            cpu_seconds=used.cpu_seconds,
            growth_bytes=used.growth_bytes,
            in_flight=most_in_flight(self._rig.provider.calls()),
            leases_lost=again,
            others_cores=used.others_cores,
        )

    async def _orders(self, database: Database, count: int) -> list[NewJob]:
        """A new session for each job."""
        orders = []
        async with database.begin() as conn:
            tenant_id = await tenants.ensure_tenant(conn, TENANT)
        for place in range(count):
            self._sessions += 1
            async with database.begin() as conn:
                session = await session_rows.put(conn, tenant_id, f"bench-{self._sessions}", model=MODEL)
                await session_rows.append(conn, session.id, self._kinds[place % KINDS])
            orders.append(NewJob(tenant_id=tenant_id, session_id=session.id, trigger=self._trigger))
        return orders

    def _wait(self) -> None:
        with psycopg.connect(self._rig.postgres.url(), autocommit=True) as connection:

            def is_over() -> bool:
                left = connection.execute(_LEFT).fetchone()
                return left is not None and left[0] == 0

            if not wait_until(is_over, PATIENCE_SECONDS, pause_seconds=0.2):
                raise RuntimeError("The jobs did not end.")

    def _asked(self, statement: str, ids: Sequence[str]) -> tuple[Any, ...]:
        with psycopg.connect(self._rig.postgres.url(), autocommit=True) as connection:
            row = connection.execute(statement, (list(ids),)).fetchone()
            assert row is not None  # noqa: S101 - an aggregate has a row
            return row


@contextmanager
def compactd(rig: Rig, *, trigger: Trigger = "manual", **environ: str) -> Iterator[CompactdJobs]:
    """The contender with its worker."""
    ready = Path(rig.folder / "worker.ready")
    process = Process(
        Command(
            name="The worker",
            arguments=(sys.executable, "-m", "worker"),
            folder=ROOT,
            log=rig.folder / "worker.log",
            environ=rig.environ()
            | {
                "COMPACTD_WORKER_CONCURRENCY": str(SLOTS),
                "COMPACTD_READY_FILE": str(ready),
                "COMPACTD_DRAIN_SECONDS": "2",
            }
            | environ,
        )
    )
    try:
        if not wait_until(ready.exists, START_SECONDS):
            raise RuntimeError(f"The worker did not start. See {rig.folder}.")
        yield CompactdJobs(rig, process, trigger)
    finally:
        process.stop()


async def _enqueued(database: Database, bell: Doorbell, orders: Sequence[NewJob]) -> list[str]:
    """The ids, committed and rung for, a few at once."""
    waiting = iter(orders)
    ids: list[str] = []

    async def producer() -> None:
        for order in waiting:
            async with database.connect() as conn:
                put = await job_rows.enqueue(conn, order, announced=True)
            if put.ring:
                await bell.ring(put.job.id)
            ids.append(put.job.id)

    async with asyncio.TaskGroup() as group:
        for _ in range(TOGETHER):
            group.create_task(producer())
    return ids


def new_message(body: bytes) -> NewMessage:
    """A body of `transcript` as the store takes it."""
    decoded = jsonbytes.decode(body)
    return NewMessage(body, decoded["uuid"], decoded["role"])
