"""What ten jobs of one tenant wait, alone and behind 10,000 bulk jobs of another; a real worker, a fake provider."""

from __future__ import annotations

import asyncio
import itertools
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
from ops.bench.verdicts import Verdict, most
from ops.embedded.waiting import wait_until
from worker.dispatch import Doorbell

FLOOD, FEW = 10_000, 10
SLOTS = 20
CALL_SECONDS = 1.0
RUNS = 3
MESSAGES, BYTES = 40, 60_000  # a small session: the flood is to fill slots, not processors
SETTLE_SECONDS = 4.0  # the flood has filled its share of the slots by then
MOST_RATIO = 2.0

_FLOOD = Path(__file__).with_name("flood.sql")
_ENDED = """
    SELECT was_compacted AND status = 'succeeded', extract(epoch FROM ended_at - created_at)::float
    FROM jobs WHERE id = ANY(%s) AND ended_at IS NOT NULL
"""

_numbers = itertools.count(1)
console = Console(stderr=True)


def verdicts() -> list[Verdict]:
    """Runs both and tells the ratio of the mean times from enqueue to end."""
    with Rig() as rig:
        rig.provider.play(latency_seconds=CALL_SECONDS, deltas=20)
        with compactd(rig, COMPACTD_WORKER_CONCURRENCY=str(SLOTS)):
            with console.status("Ten jobs alone ..."):
                alone = [second for _ in range(RUNS) for second in asyncio.run(_few(rig))]
            with console.status(f"The same behind {FLOOD:,} bulk jobs of another tenant ..."):
                _flood(rig)
                behind = [second for _ in range(RUNS) for second in asyncio.run(_behind(rig))]
    print(f"{FEW} jobs, enqueue to end: {mean(alone):.2f} s alone, {mean(behind):.2f} s behind {FLOOD:,} of another")
    return [most("time behind a flood over time alone", mean(behind) / mean(alone), MOST_RATIO)]


async def _behind(rig: Rig) -> list[float]:
    await asyncio.sleep(SETTLE_SECONDS)
    return await _few(rig)


async def _few(rig: Rig) -> list[float]:
    """Seconds from enqueue to end of ten new jobs, each in a session of its own."""
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


def _waited(rig: Rig, ids: Sequence[str]) -> list[float]:
    """Seconds from enqueue to end, once all have ended. Raises RuntimeError for one without a result."""
    with psycopg.connect(rig.postgres.url(), autocommit=True) as connection:

        def ended() -> list[tuple[bool, float]]:
            return connection.execute(_ENDED, (list(ids),)).fetchall()

        wait_until(lambda: len(ended()) == len(ids), PATIENCE_SECONDS)
        told = ended()
    if len(told) < len(ids) or not all(done for done, _ in told):
        raise RuntimeError("A job of the bench ended without a result, or not at all.")
    return [float(seconds) for _, seconds in told]


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
