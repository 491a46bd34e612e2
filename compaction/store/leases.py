"""Leases: what a worker writes while it runs a job. Every write names its fencing token; a stale one does nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Integer,
    LargeBinary,
    Text,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction import errors
from compaction.core.jsonbytes import Json
from compaction.store import bodies, plain
from compaction.store.job_rows import RUNNING
from compaction.store.tables import jobs


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat learned: tokens that are still ours, and jobs among them that somebody wants cancelled."""

    alive: frozenset[int]
    cancel_requested: frozenset[str]


_TOKEN = bindparam("b_token", type_=BigInteger)
_HELD = (jobs.c.id == bindparam("b_job_id", type_=jobs.c.id.type), jobs.c.lease_token == _TOKEN, RUNNING)
_LIMIT = bindparam("b_limit", type_=Integer)


def _counted() -> ColumnElement[int]:
    one_more = jobs.c.model_calls < _LIMIT
    return jobs.c.model_calls + case((one_more, literal_column("1")), else_=literal_column("0"))


_BEAT = (
    update(jobs)
    .where(
        jobs.c.lease_token == func.any(bindparam("b_tokens", type_=ARRAY(BigInteger))),
        jobs.c.lease_owner == bindparam("b_owner", type_=Text),
        RUNNING,
    )
    .values(
        lease_expires_at=func.now() + bindparam("b_lease_seconds", type_=Double) * literal_column("interval '1 second'")
    )
    .returning(jobs.c.lease_token, jobs.c.id, jobs.c.cancel_requested_at.is_not(None))
)
_PROGRESS = (
    update(jobs)
    .where(jobs.c.lease_token == _TOKEN, RUNNING)
    .values(progress=cast(bindparam("b_progress", type_=Text), JSONB))
    .returning(jobs.c.id)
)
_CANCELLING = select(jobs.c.lease_token).where(
    jobs.c.lease_token == func.any(bindparam("b_tokens", type_=ARRAY(BigInteger))),
    jobs.c.cancel_requested_at.is_not(None),
    RUNNING,
)
_COUNT = update(jobs).where(*_HELD).values(model_calls=_counted()).returning(literal_column("old.model_calls", Integer))
_SAVE = update(jobs).where(*_HELD).values(paid_summary=bindparam("b_body", type_=LargeBinary)).returning(jobs.c.id)


async def beat(conn: AsyncConnection, owner: str, lease_seconds: float, tokens: Collection[int]) -> Beat:
    """Renews the owner's leases for `lease_seconds` from now; what is not in `alive` belongs to others or has ended."""
    if not tokens:
        return Beat(frozenset(), frozenset())
    held = await conn.execute(_BEAT, {"b_tokens": list(tokens), "b_owner": owner, "b_lease_seconds": lease_seconds})
    alive, cancel_requested = set(), set()
    for token, job_id, cancelling in held:
        alive.add(token)
        if cancelling:
            cancel_requested.add(job_id)
    return Beat(frozenset(alive), frozenset(cancel_requested))


async def cancel_requested(conn: AsyncConnection, tokens: Collection[int]) -> frozenset[int]:
    """The tokens among `tokens` whose jobs somebody wants cancelled; a look that renews nothing."""
    found = await conn.execute(_CANCELLING, {"b_tokens": list(tokens)})
    return frozenset(found.scalars())


async def set_progress(conn: AsyncConnection, token: int, progress: Mapping[str, Json]) -> bool:
    """Shows pollers how far the job is ({step, percent}); False when the lease is lost."""
    shown = await conn.execute(_PROGRESS, {"b_token": token, "b_progress": plain.mended_json_text(dict(progress))})
    return shown.first() is not None


async def count_model_call(conn: AsyncConnection, job_id: str, token: int, limit: int) -> bool:
    """Counts one call before it is made; False when the job has used up `limit` calls over all its attempts.

    Raises errors.LeaseLost when another worker holds the job.
    """
    made: int | None = None
    if known := plain.job_id(job_id):
        counted = await conn.execute(_COUNT, {"b_job_id": known, "b_token": token, "b_limit": limit})
        made = counted.scalar_one_or_none()
    if made is None:
        raise errors.LeaseLost
    return made < limit


async def save_paid_summary(conn: AsyncConnection, job_id: str, token: int, body: bytes) -> bool:
    """Keeps a paid summary for the job's next attempt, should this one die; False when the lease is lost."""
    known = plain.job_id(job_id)
    if known is None:
        return False
    saved = await conn.execute(_SAVE, {"b_job_id": known, "b_token": token, "b_body": bodies.pack(body)})
    return saved.first() is not None
