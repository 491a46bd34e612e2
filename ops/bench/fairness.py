"""What ten jobs of one tenant wait, alone and behind 10,000 bulk jobs of another; a real worker, a fake provider."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import psycopg
from rich.console import Console

from compaction.store import bodies, jobs, sessions, tenants
from compaction.store.engine import Database
from compaction.store.jobs import NewJob
from compaction.store.sessions import NewMessage
from ops.bench.compactd_jobs import MODEL, compactd, new_message
from ops.bench.rig import Rig
from ops.bench.transcripts import transcript
from ops.bench.trial import PATIENCE_SECONDS
from ops.bench.verdicts import Verdict, least, under
from ops.embedded.waiting import wait_until
from worker.dispatch import Doorbell

FLOOD, FEW = 10_000, 10
SLOTS = 20
CALL_SECONDS = 1.0
RUNS = 3
MESSAGES, BYTES = 40, 60_000  # a small session: the flood is to fill slots, not processors
SETTLE_SECONDS = 4.0  # the flood has filled its share of the slots by then
MOST_RATIO = 2.0
LEAST_HELD = SLOTS // 2  # slots that the flood works in meanwhile, or nothing is shown

Times = list[tuple[float, float]]  # of each job: seconds from enqueue to start, and to its end

_FLOOD = Path(__file__).with_name("flood.sql")
_ENDED = """
    SELECT was_compacted AND status = 'succeeded', extract(epoch FROM started_at - created_at)::float,
           extract(epoch FROM ended_at - created_at)::float
    FROM jobs WHERE id = ANY(%s) AND ended_at IS NOT NULL
"""

_HELD = "SELECT count(*) FROM jobs WHERE status = 'running' AND trigger = 'bulk'"

_numbers = itertools.count(1)
console = Console(stderr=True)


def verdicts() -> list[Verdict]:
    """Runs both and tells the ratio of the mean times from enqueue to end."""
    with Rig() as rig:
        rig.provider.play(latency_seconds=CALL_SECONDS, deltas=20)
        with compactd(rig, COMPACTD_WORKER_CONCURRENCY=str(SLOTS)):
            with console.status("Ten jobs alone ..."):
                alone = [times for _ in range(RUNS) for times in asyncio.run(_few(rig))]
            with console.status(f"The same behind {FLOOD:,} bulk jobs of another tenant ..."):
                _flood(rig)
                held, behind = [], []
                for _ in range(RUNS):
                    time.sleep(SETTLE_SECONDS)
                    held.append(_held(rig))
                    behind += asyncio.run(_few(rig))
    for place, what in enumerate(("start", "end")):
        of_alone, of_behind = (mean(times[place] for times in run) for run in (alone, behind))
        print(f"{FEW} jobs, enqueue to {what}: {of_alone:.3f} s alone, {of_behind:.3f} s behind {FLOOD:,} of another")
    ratio = mean(times[1] for times in behind) / mean(times[1] for times in alone)
    return [
        least("slots that the flood holds meanwhile", min(held), LEAST_HELD),
        under("time behind a flood over time alone", ratio, MOST_RATIO),
    ]


def _held(rig: Rig) -> int:
    with psycopg.connect(rig.postgres.url(), autocommit=True) as connection:
        row = connection.execute(_HELD).fetchone()
    return 0 if row is None else int(row[0])


async def _few(rig: Rig) -> Times:
    """Those of ten new jobs, each in a session of its own."""
    database, bell = Database(rig.database_url, pool_size=2), Doorbell(rig.redis_url)
    try:
        orders = await _orders(database)
        ids = [await _enqueued(database, bell, order) for order in orders]
        return await asyncio.to_thread(_waited, rig, ids)
    finally:
        await bell.aclose()
        await database.close()


async def _orders(database: Database) -> list[NewJob]:
    messages = _messages()
    async with database.begin() as conn:
        tenant_id = await tenants.ensure_tenant(conn, "few")
    orders = []
    for _ in range(FEW):
        async with database.begin() as conn:
            name = f"few-{next(_numbers)}"
            session = await sessions.put(conn, tenant_id, name, model=MODEL)
            await sessions.append(conn, session.id, messages)
        orders.append(NewJob(tenant_id=tenant_id, session_id=session.id, trigger="manual", force=True))
    return orders


async def _enqueued(database: Database, bell: Doorbell, order: NewJob) -> str:
    async with database.begin() as conn:
        put = await jobs.enqueue(conn, order, announced=True)
    await (bell.ring(put.job.id) if put.ring else bell.wake())
    return put.job.id


def _waited(rig: Rig, ids: Sequence[str]) -> Times:
    """The times of the jobs, once all have ended. Raises RuntimeError for one without a result."""
    with psycopg.connect(rig.postgres.url(), autocommit=True) as connection:

        def ended() -> list[tuple[bool, float, float]]:
            return connection.execute(_ENDED, (list(ids),)).fetchall()

        wait_until(lambda: len(ended()) == len(ids), PATIENCE_SECONDS)
        told = ended()
    if len(told) < len(ids) or not all(done for done, *_ in told):
        raise RuntimeError("A job of the bench ended without a result, or not at all.")
    return [(float(started), float(ended)) for _, started, ended in told]


def _messages() -> list[NewMessage]:
    return [new_message(body) for body in transcript(1, messages=MESSAGES, size_bytes=BYTES)]


def _flood(rig: Rig) -> None:
    told = _messages()
    values = {
        "model": MODEL,
        "count": len(told),
        "flood": FLOOD,
        "seqs": list(range(1, len(told) + 1)),
        "uuids": [one.uuid for one in told],
        "roles": [one.role for one in told],
        "sizes": [len(one.body) for one in told],
        "bodies": [bodies.pack(one.body) for one in told],
    }
    with psycopg.connect(rig.postgres.url(), autocommit=True) as connection:
        connection.execute(_FLOOD.read_bytes(), values)
        connection.execute("ANALYZE")
