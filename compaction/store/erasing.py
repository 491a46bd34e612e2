"""Erasing a session on request: everything that says a word of it goes, in one transaction.

Most of it hangs on the session's row and goes with it. What does not: deliveries of webhooks (a log of its own) and
kept answers of idempotent requests, which quote jobs and are packed, so that no statement can find them by a name: the
tenant's answers are read page by page. A worker that still has a job of the session finds its lease gone and writes
nothing (`job_queue`, `finishing`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import BigInteger, Integer, Text, and_, bindparam, delete, func, literal_column, or_, select
from sqlalchemy.dialects.postgresql import ARRAY, UUID
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction import errors
from compaction.core import jsonbytes
from compaction.core.jobs import TERMINAL
from compaction.core.jsonbytes import Json
from compaction.store import bodies, plain
from compaction.store.notify import CHANNEL
from compaction.store.tables import idempotency_keys, jobs, messages, results, sessions, webhook_deliveries

BATCH_MESSAGES = 20_000  # a tenth of a second, far below the statement's time limit
BATCH_ANSWERS = 500  # unpacked at a time beside the loop: some milliseconds


@dataclass(frozen=True, slots=True)
class Erased:
    """How much there was. `cancelled_jobs` are those of `jobs` that had not ended."""

    messages: int
    jobs: int
    cancelled_jobs: int
    results: int
    deliveries: int
    kept_answers: int


_TENANT_ID = bindparam("b_tenant_id", type_=BigInteger)
_NAME = bindparam("b_name", type_=Text)
_SESSION_ID = bindparam("b_session_id", type_=BigInteger)
_LIMIT = bindparam("b_limit", type_=Integer)
_KEYS = bindparam("b_keys", type_=ARRAY(Text))
# The whole row: appends and enqueues wait, and find nothing afterwards.
_LOCK = select(sessions.c.id).where(sessions.c.tenant_id == _TENANT_ID, sessions.c.name == _NAME).with_for_update()
_JOBS = select(jobs.c.id, jobs.c.status).where(jobs.c.session_id == _SESSION_ID)
_RESULTS = select(func.count()).select_from(results).where(results.c.session_id == _SESSION_ID)
_DATA = webhook_deliveries.c.payload.op("->")(literal_column("'data'"))
_DELIVERIES = delete(webhook_deliveries).where(
    webhook_deliveries.c.tenant_id == _TENANT_ID,
    or_(
        _DATA.op("->>")(literal_column("'session_id'")) == _NAME,
        webhook_deliveries.c.job_id == func.any(bindparam("b_job_ids", type_=ARRAY(UUID(as_uuid=False)))),
    ),
)
_OLDEST = (
    select(messages.c.seq)
    .where(messages.c.session_id == _SESSION_ID)
    .order_by(messages.c.seq)
    .limit(_LIMIT)
    .subquery("oldest")
)
_MESSAGES = delete(messages).where(messages.c.session_id == _SESSION_ID, messages.c.seq.in_(select(_OLDEST.c.seq)))
_SESSION = delete(sessions).where(sessions.c.id == _SESSION_ID)
_ANSWERS = (
    select(idempotency_keys.c.key, idempotency_keys.c.response)
    .where(
        idempotency_keys.c.tenant_id == _TENANT_ID,
        idempotency_keys.c.key > bindparam("b_after_key", type_=Text),
    )
    .order_by(idempotency_keys.c.key)
    .limit(_LIMIT)
)
_FORGET = delete(idempotency_keys).where(
    and_(idempotency_keys.c.tenant_id == _TENANT_ID, idempotency_keys.c.key == func.any(_KEYS))
)
_TELL = select(func.pg_notify(literal_column(f"'{CHANNEL}'"), bindparam("b_job_id", type_=Text)))


async def erase(conn: AsyncConnection, tenant_id: int, name: str, *, cancel_jobs: bool = False) -> Erased | None:
    """Deletes the tenant's session with everything of it; None when there is none. Call it in one transaction.

    Raises errors.Conflict when jobs of it have not ended, unless `cancel_jobs`: then they end here, without a trace.
    """
    named = {"b_tenant_id": tenant_id, "b_name": plain.text("session_id", name)}
    session_id = (await conn.execute(_LOCK, named)).scalar_one_or_none()
    if session_id is None:
        return None
    own = {"b_session_id": session_id}
    statuses: dict[str, str] = {row.id: row.status for row in await conn.execute(_JOBS, own)}
    live = [job_id for job_id, status in statuses.items() if status not in TERMINAL]
    if live and not cancel_jobs:
        raise errors.Conflict(
            "Jobs of this session have not ended. Wait for them or cancel them, or ask for both with cancel_jobs=true."
        )
    made = (await conn.execute(_RESULTS, own)).scalar_one()
    answers = await _forget_answers(conn, tenant_id, name, frozenset(statuses))
    deliveries = (await conn.execute(_DELIVERIES, {**named, "b_job_ids": list(statuses)})).rowcount
    said = await _delete_messages(conn, own)
    await conn.execute(_SESSION, own)
    for job_id in live:  # whoever waits for one of them looks, and finds it gone
        await conn.execute(_TELL, {"b_job_id": job_id})
    return Erased(said, len(statuses), len(live), made, deliveries, answers)


async def _delete_messages(conn: AsyncConnection, own: dict[str, int]) -> int:
    """In batches: a session may hold more than one statement can delete in its time."""
    total = 0
    while deleted := (await conn.execute(_MESSAGES, {**own, "b_limit": BATCH_MESSAGES})).rowcount:
        total += deleted
    return total


async def _forget_answers(conn: AsyncConnection, tenant_id: int, name: str, job_ids: frozenset[str]) -> int:
    """Deletes the kept answers that tell of the session; how many."""
    forgotten, after_key = 0, ""
    while True:
        values = {"b_tenant_id": tenant_id, "b_after_key": after_key, "b_limit": BATCH_ANSWERS}
        page = [(key, response) for key, response in await conn.execute(_ANSWERS, values)]
        told = await asyncio.to_thread(_telling, page, name, job_ids)
        if told:
            forgotten += (await conn.execute(_FORGET, {"b_tenant_id": tenant_id, "b_keys": told})).rowcount
        if len(page) < BATCH_ANSWERS:
            return forgotten
        after_key = page[-1][0]


def _telling(page: Sequence[tuple[str, bytes | None]], name: str, job_ids: frozenset[str]) -> list[str]:
    """The keys whose answers tell of the session or of one of its jobs."""
    return [key for key, response in page if response is not None and _tells(response, name, job_ids)]


def _tells(response: bytes, name: str, job_ids: frozenset[str]) -> bool:
    try:
        kept = jsonbytes.decode(bodies.unpack_object(response))
    except (errors.Internal, ValueError):
        return False  # sealed with a key that is gone: nobody can read it any more, we neither
    body: Json = kept.get("body") if isinstance(kept, dict) else None
    if not isinstance(body, dict):
        return False
    return body.get("session_id") == name or not job_ids.isdisjoint(
        str(body[field]) for field in ("id", "job_id") if field in body
    )
