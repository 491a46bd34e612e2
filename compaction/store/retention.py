"""Retention: what has ended long ago is deleted in batches, with everything that hangs on it.

Never deleted: a result that a session's live view stands on, whatever its age, and messages. Ids of jobs grow with
time, so a pass walks along the primary key and goes on where the last batch ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Delete,
    Double,
    Integer,
    Select,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store.job_rows import status_is
from compaction.store.tables import idempotency_keys, jobs, sessions

FIRST_ID = "00000000-0000-0000-0000-000000000000"
DAY_SECONDS = 86_400

_AGE = bindparam("b_age_seconds", type_=Double) * literal_column("interval '1 second'")
_LIMIT = bindparam("b_limit", type_=Integer)


@dataclass(frozen=True, slots=True)
class Pruned:
    """What one batch did, and the id after which the next one goes on; None at the end of a pass."""

    deleted: int
    after_id: str | None


def _prune() -> Select[Any]:
    page = (
        select(jobs.c.id, jobs.c.session_id, jobs.c.status, jobs.c.ended_at)
        .where(
            jobs.c.id > bindparam("b_after_id", type_=jobs.c.id.type),
            jobs.c.id < func.uuidv7(-_AGE),  # made before; it may have ended later
        )
        .order_by(jobs.c.id)
        .limit(_LIMIT)
        .cte("page")
    )
    live = select(sessions.c.live_job_id).where(sessions.c.id == page.c.session_id).scalar_subquery()
    old: ColumnElement[bool] = page.c.ended_at < func.now() - _AGE
    over = status_is(page, "succeeded", "failed", "cancelled")
    deleted = (
        delete(jobs)
        .where(
            jobs.c.id.in_(select(page.c.id).where(over, old, live.is_distinct_from(page.c.id))),
            status_is(jobs, "succeeded", "failed", "cancelled"),
        )
        .returning(jobs.c.id)
        .cte("deleted")
    )
    last = select(page.c.id).order_by(page.c.id.desc()).limit(literal_column("1")).scalar_subquery()
    counted = select(func.count()).select_from(deleted).scalar_subquery()
    return select(counted, select(func.count()).select_from(page).scalar_subquery(), last)


def _prune_keys() -> Delete:
    key = tuple_(idempotency_keys.c.tenant_id, idempotency_keys.c.key)
    old = (
        select(idempotency_keys.c.tenant_id, idempotency_keys.c.key)
        .where(idempotency_keys.c.created_at < func.now() - _AGE)
        .order_by(idempotency_keys.c.created_at)
        .limit(_LIMIT)
    )
    return delete(idempotency_keys).where(key.in_(old))


_PRUNE = _prune()
_PRUNE_KEYS = _prune_keys()


async def prune_jobs(conn: AsyncConnection, age_seconds: float, limit: int, after_id: str = FIRST_ID) -> Pruned:
    """Looks at the next `limit` old jobs and deletes those that ended more than `age_seconds` ago.

    Their attempts, events and results go with them.
    """
    values = {"b_age_seconds": age_seconds, "b_limit": limit, "b_after_id": after_id}
    deleted, looked_at, last = (await conn.execute(_PRUNE, values)).one()
    return Pruned(deleted, last if looked_at == limit else None)


async def prune_idempotency_keys(conn: AsyncConnection, age_seconds: float, limit: int) -> int:
    """Deletes up to `limit` idempotency keys that are older; tells how many."""
    return (await conn.execute(_PRUNE_KEYS, {"b_age_seconds": age_seconds, "b_limit": limit})).rowcount
