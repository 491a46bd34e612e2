"""Dispatch: what waits, tenant by tenant, and the mark on the jobs that the workers are rung for.

Which of them are rung for is `core.fairness`'s to decide. However many jobs wait, a look reads a few per tenant and
class from `ix_jobs_fair`, the oldest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Integer,
    Select,
    SmallInteger,
    bindparam,
    cast,
    column,
    extract,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core import fairness
from compaction.core.fairness import Candidate, Room
from compaction.core.jobs import PRIORITIES
from compaction.store import plain, turns
from compaction.store.job_rows import READY, RUNNING, status_is
from compaction.store.tables import jobs, provider_pauses
from compaction.store.tenant_walk import tenants_with

MAX_TENANTS = 500  # looked at in one turn; with more, the next turn goes on behind the last one
SPARE = 2  # candidates per tenant over its equal part of the window, so that small tenants leave no holes


@dataclass(frozen=True, slots=True)
class View:
    """Jobs that may start now, and whether anything but bulk waits for a slot, rung for or not.

    `next_tenant_id` is where to look on, 0 when no tenant was left out.
    """

    candidates: tuple[Candidate, ...] = ()
    others_wait: bool = False
    next_tenant_id: int = 0


_SECOND: ColumnElement[Any] = literal_column("interval '1 second'")
_CLASSES = "ARRAY[{}]::smallint[]".format(",".join(str(level) for level in sorted(set(PRIORITIES.values()))))
_RUNNING = (
    select(jobs.c.tenant_id, jobs.c.priority, func.count()).where(RUNNING).group_by(jobs.c.tenant_id, jobs.c.priority)
)

_RUNNING_SINCE = (
    select(func.count()).select_from(jobs).where(RUNNING, jobs.c.lease_token > bindparam("b_token", type_=BigInteger))
)


def _unheard() -> ColumnElement[bool]:
    """Never rung for, or in vain: not heard of for a while, or rung for while the provider was paused."""
    silent = func.now() - bindparam("b_redispatch_seconds", type_=Double) * _SECOND
    resumed = select(func.max(provider_pauses.c.changed_at)).where(
        provider_pauses.c.phase != literal_column("'paused'")
    )
    return or_(jobs.c.dispatched_at.is_(None), jobs.c.dispatched_at < func.greatest(silent, resumed.scalar_subquery()))


def _tenants() -> Select[Any]:
    """The tenants with ready jobs, one index probe each."""
    tenant = tenants_with(jobs, lambda table: status_is(table, "queued", "retrying"))
    return select(tenant.c.id).where(tenant.c.id.is_not(None)).limit(bindparam("b_limit", type_=Integer))


def _candidates() -> Select[Any]:
    tenant = (
        func.unnest(bindparam("b_tenant_ids", type_=ARRAY(BigInteger)))
        .table_valued(column("id", BigInteger), name="tenant")
        .render_derived()
    )
    level = (
        func.unnest(literal_column(_CLASSES, ARRAY(SmallInteger)))
        .table_valued(column("priority", SmallInteger), name="level")
        .render_derived()
    )
    # One range of ix_jobs_fair: with three conditions the planner, who knows the largest tenant best, would read
    # everybody's jobs of the class and leave out those of the others.
    place = (jobs.c.tenant_id, jobs.c.priority, jobs.c.not_before)
    oldest = (
        select(jobs.c.id, jobs.c.not_before)
        .where(
            READY,
            tuple_(*place) >= tuple_(tenant.c.id, level.c.priority, literal_column("'-infinity'::timestamptz")),
            tuple_(*place) <= tuple_(tenant.c.id, level.c.priority, func.now()),
            jobs.c.cancel_requested_at.is_(None),
            or_(jobs.c.deadline_at.is_(None), jobs.c.deadline_at > func.now()),
            _unheard(),
            turns.is_free(),
        )
        .order_by(*place, jobs.c.id)
        .limit(bindparam("b_limit", type_=Integer))
        .lateral("oldest")
    )
    waited = cast(extract("epoch", func.now() - oldest.c.not_before), Double)
    return (
        select(oldest.c.id, tenant.c.id, level.c.priority, waited)
        .select_from(tenant)
        .join(level, true())
        .join(oldest, true())
    )


def _mark() -> Select[Any]:
    picked = (
        select(jobs.c.id)
        .where(jobs.c.id == func.any(bindparam("b_ids", type_=ARRAY(jobs.c.id.type))), READY, _unheard())
        .with_for_update(skip_locked=True, key_share=True)
        .cte("picked")
    )
    marked = (
        update(jobs).where(jobs.c.id == picked.c.id).values(dispatched_at=func.now()).returning(jobs.c.id).cte("marked")
    )
    return select(marked.c.id)


# However the planner counts, it must not sort all that waits, thousands of times what is wanted: only one index has the
# order that the look asks for, and nothing but sorting is dearer.
_BY_INDEX = select(
    *(
        func.set_config(literal_column(f"'{name}'"), literal_column("'off'"), literal_column("true"))
        for name in ("enable_sort", "enable_incremental_sort")
    )
)
_TENANTS = _tenants()
_CANDIDATES = _candidates()
_OTHERS_WAIT = select(turns.others_wait())
_MARK = _mark()
_FORGET_RING = (
    update(jobs)
    .where(jobs.c.id == bindparam("b_job_id", type_=jobs.c.id.type), READY, jobs.c.dispatched_at.is_not(None))
    .values(dispatched_at=None)
)


async def in_flight(conn: AsyncConnection) -> dict[tuple[int, int], int]:
    """The running jobs by (tenant, priority)."""
    return {(tenant, priority): count for tenant, priority, count in await conn.execute(_RUNNING)}


async def running_since(conn: AsyncConnection, token: int) -> int:
    """How many jobs run that were claimed after the fencing token `token` was drawn."""
    count: int = (await conn.execute(_RUNNING_SINCE, {"b_token": token})).scalar_one()
    return count


async def look(conn: AsyncConnection, limit: int, redispatch_seconds: float, *, after_tenant_id: int = 0) -> View:
    """The oldest jobs that may start now, enough of each tenant for `limit` rings in all.

    Call it in a transaction of its own or with `mark`: it tells the planner for the rest of it not to sort.

    A job may start when it is due, not cancelled, its session has no other active job, and it was never rung for or
    not heard of for `redispatch_seconds`.
    """
    if limit <= 0:
        return View(next_tenant_id=after_tenant_id)
    found = await conn.execute(_TENANTS, {"b_after_tenant_id": after_tenant_id, "b_limit": MAX_TENANTS})
    tenants = list(found.scalars())
    if not tenants:
        return View()
    await conn.execute(_BY_INDEX)
    each = min(limit, SPARE * -(-limit // len(tenants)) + SPARE)
    values = {"b_tenant_ids": tenants, "b_limit": each, "b_redispatch_seconds": redispatch_seconds}
    candidates = tuple(Candidate(*row) for row in await conn.execute(_CANDIDATES, values))
    others_wait = (await conn.execute(_OTHERS_WAIT)).scalar_one()
    return View(candidates, others_wait, tenants[-1] if len(tenants) == MAX_TENANTS else 0)


async def mark(conn: AsyncConnection, job_ids: Sequence[str], redispatch_seconds: float) -> list[str]:
    """Marks the jobs as rung for and tells which to ring for, in their order.

    Left out is what another leader has marked or a worker has taken meanwhile: safe with two callers at once.
    """
    if not job_ids:
        return []
    values = {"b_ids": list(job_ids), "b_redispatch_seconds": redispatch_seconds}
    marked = set((await conn.execute(_MARK, values)).scalars())
    return [job_id for job_id in job_ids if job_id in marked]


async def due(conn: AsyncConnection, limit: int, redispatch_seconds: float) -> list[str]:
    """Marks up to `limit` jobs and tells which to ring for: urgent ones first, tenants in turn, no share for bulk."""
    view = await look(conn, limit, redispatch_seconds)
    picked = fairness.pick(view.candidates, await in_flight(conn), Room(jobs=limit, bulk=limit))
    return await mark(conn, picked, redispatch_seconds)


async def forget_ring(conn: AsyncConnection, job_id: str) -> None:
    """The ring for a job was lost: the reconciler is to ring again soon."""
    if known := plain.job_id(job_id):
        await conn.execute(_FORGET_RING, {"b_job_id": known})
