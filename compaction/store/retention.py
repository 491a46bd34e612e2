"""Retention: what has ended long ago is deleted in batches, with everything that hangs on it.

Never deleted: a result that a session's live view stands on, whatever its age, and the messages of a session that a
producer named. What an inline job brought along goes with the last of its jobs. Ids of jobs grow with time, so a pass
walks along the primary key and goes on where the last batch ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Delete,
    Double,
    Integer,
    Select,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY
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


def _is_needed() -> ColumnElement[bool]:
    """A job of the session has not ended, or not long ago."""
    needs = or_(jobs.c.ended_at.is_(None), jobs.c.ended_at >= func.now() - _AGE)
    return exists().where(jobs.c.session_id == sessions.c.id, needs)


_OVER = (
    select(sessions.c.id)
    .where(sessions.c.is_ephemeral, sessions.c.created_at < func.now() - _AGE, ~_is_needed())
    .order_by(sessions.c.created_at)
    .limit(_LIMIT)
    .with_for_update(of=sessions, skip_locked=True)  # the key too: from here on no retry refers to one
)
_SWEEP = delete(sessions).where(sessions.c.id == func.any(bindparam("b_ids", type_=ARRAY(BigInteger))), ~_is_needed())
_PRUNE = _prune()
_PRUNE_KEYS = _prune_keys()


async def prune_jobs(conn: AsyncConnection, age_seconds: float, limit: int, after_id: str = FIRST_ID) -> Pruned:
    """Looks at the next `limit` old jobs and deletes those that ended more than `age_seconds` ago.

    Their attempts, events and results go with them.
    """
    values = {"b_age_seconds": age_seconds, "b_limit": limit, "b_after_id": after_id}
    deleted, looked_at, last = (await conn.execute(_PRUNE, values)).one()
    return Pruned(deleted, last if looked_at == limit else None)


async def prune_ephemeral_sessions(conn: AsyncConnection, age_seconds: float, limit: int) -> int:
    """Deletes up to `limit` sessions of inline jobs that all ended more than `age_seconds` ago; tells how many.

    Nothing of them stays: messages, jobs, attempts, events and results go with them. A retry that was committed before
    the lock keeps its session, one that comes later finds neither job nor session.
    """
    values: dict[str, Any] = {"b_age_seconds": age_seconds, "b_limit": limit}
    found = list((await conn.execute(_OVER, values)).scalars())
    if not found:
        return 0
    # A statement of its own sees what was committed until the lock was had.
    return (await conn.execute(_SWEEP, {"b_age_seconds": age_seconds, "b_ids": found})).rowcount


async def prune_idempotency_keys(conn: AsyncConnection, age_seconds: float, limit: int) -> int:
    """Deletes up to `limit` idempotency keys that are older; tells how many."""
    return (await conn.execute(_PRUNE_KEYS, {"b_age_seconds": age_seconds, "b_limit": limit})).rowcount
