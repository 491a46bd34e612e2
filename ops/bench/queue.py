"""Enqueue and claim on a full queue against an empty one, and what a flood by one tenant costs another.

    make bench-queue

Full: one million ended jobs and 50,000 that wait. Both databases live in one cluster, and the two take turns, so that
a slow moment of the machine hits both. For fairness a real worker with a fake provider serves a tenant with ten jobs,
once alone and once behind 10,000 bulk jobs of another.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import psycopg
from rich.console import Console

from compaction.core.backpressure import Caps
from compaction.store import depths, jobs, sessions, tenants
from compaction.store.engine import Database
from compaction.store.jobs import NewJob
from ops.bench import fairness
from ops.bench.verdicts import most, told
from ops.embedded import Postgres
from ops.embedded.databases import alembic, create_database

ENDED, WAITING = 1_000_000, 50_000
SESSIONS = WAITING  # a session has one waiting job at most
ROUNDS, EACH = 20, 100  # turns that the two databases take, and jobs of a turn
WARM = 100  # plans, pools and caches: of no figure
CAPS = Caps(tenant=100_000, everybody=500_000)  # the defaults of the settings: the count is part of an enqueue
MOST_RATIO = 1.5  # of p99 on the full queue over that on the empty one
FILLING = Path(__file__).with_name("queue_filling.sql")

console = Console(stderr=True)


@dataclass(slots=True)
class Measured:
    """Seconds of each operation on one database."""

    enqueue: list[float] = field(default_factory=list)
    claim: list[float] = field(default_factory=list)


class Queue:
    """One database and a tenant that works on it beside whatever lies there."""

    def __init__(self, postgres: Postgres, name: str) -> None:
        self._url = postgres.url(name)
        self._database = Database(postgres.sqlalchemy_url(name), pool_size=2)
        self._made = 0
        self.measured = Measured()

    async def turn(self, count: int) -> None:
        """So many jobs enqueued, then claimed, each timed; afterwards they are gone again."""
        async with self._database.begin() as conn:
            tenant_id = await tenants.ensure_tenant(conn, "bench")
            await depths.refresh(conn)
        orders = [await self._order(tenant_id) for _ in range(count)]
        ids = [await _timed(self.measured.enqueue, self._enqueue(order)) for order in orders]
        for job_id in ids:
            await _timed(self.measured.claim, self._claim(job_id))
        self._forget(tenant_id)

    async def close(self) -> None:
        """Gives the connections back."""
        await self._database.close()

    def _forget(self, tenant_id: int) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("DELETE FROM jobs WHERE tenant_id = %s", (tenant_id,))

    async def _order(self, tenant_id: int) -> NewJob:
        self._made += 1
        async with self._database.begin() as conn:
            session = await sessions.put(conn, tenant_id, f"bench-{self._made}", model="m")
        return NewJob(tenant_id=tenant_id, session_id=session.id, trigger="manual")

    async def _enqueue(self, order: NewJob) -> str:
        async with self._database.begin() as conn:
            return (await jobs.enqueue(conn, order, announced=True, caps=CAPS)).job.id

    async def _claim(self, job_id: str) -> str:
        async with self._database.connect() as conn:
            if await jobs.claim(conn, job_id, "bench", lease_seconds=600) is None:
                raise AssertionError("a job that nobody else knows was not to be had")
        return job_id


async def _timed(seconds: list[float], work: Awaitable[str]) -> str:
    began = time.perf_counter()
    job_id = await work
    seconds.append(time.perf_counter() - began)
    return job_id


def main() -> int:
    """Prints the ratios and a verdict for each promise; 1 when one is not met."""
    with tempfile.TemporaryDirectory(prefix="compactd-bench-") as folder:
        postgres = Postgres(Path(folder) / "postgres")
        try:
            postgres.start()
            empty, full = asyncio.run(_measured(postgres, Path(folder)))
        finally:
            postgres.remove()
    verdicts = []
    print(f"{'':10} {'':6} {'empty':>9} {'full':>9} {'ratio':>6}")
    for name in ("enqueue", "claim"):
        pairs = [getattr(one, name) for one in (empty, full)]
        ratios = {}
        for share in (50, 99):
            low, high = (1000 * _percentile(seconds, share) for seconds in pairs)
            ratios[share] = high / low
            print(f"{name:10} p{share:<5} {low:6.2f} ms {high:6.2f} ms {ratios[share]:6.2f}")
        verdicts.append(most(f"{name} p99, full over empty", ratios[99], MOST_RATIO))
    return told([*verdicts, *fairness.verdicts()])


async def _measured(postgres: Postgres, folder: Path) -> tuple[Measured, Measured]:
    for name in ("empty", "full"):
        create_database(postgres, name)
        alembic(postgres.sqlalchemy_url(name), folder / "alembic.log", "upgrade", "head")
    with console.status(f"Filling a queue with {ENDED:,} ended and {WAITING:,} waiting jobs ..."):
        _fill(postgres.url("full"))
    empty, full = Queue(postgres, "empty"), Queue(postgres, "full")
    for queue in (empty, full):
        await queue.turn(WARM)
        queue.measured = Measured()
    for number in range(ROUNDS):
        with console.status(f"Round {number + 1} of {ROUNDS} ..."):
            for queue in (empty, full) if number % 2 else (full, empty):
                await queue.turn(EACH)
    for queue in (empty, full):
        await queue.close()
    return empty.measured, full.measured


def _fill(url: str) -> None:
    values = {":sessions": str(SESSIONS), ":ended": str(ENDED // SESSIONS)}
    statements = FILLING.read_text(encoding="utf-8")
    for name, value in values.items():
        statements = statements.replace(name, value)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statements.encode())
        connection.execute("VACUUM ANALYZE")


def _percentile(seconds: list[float], share: int) -> float:
    return median(seconds) if share == 50 else quantiles(seconds, n=100)[share - 1]  # noqa: PLR2004 - the middle


if __name__ == "__main__":
    sys.exit(main())
