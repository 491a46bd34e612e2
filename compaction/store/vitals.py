"""Vitals: what waits and runs at this moment, counted up to a bound, of one tenant or of all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Select,
    SmallInteger,
    cast,
    column,
    extract,
    func,
    literal_column,
    select,
    values,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.jobs import PRIORITIES, Status
from compaction.store.depths import EVERYBODY
from compaction.store.job_rows import READY, status_is
from compaction.store.reach import Reach
from compaction.store.tables import breakers, jobs, queue_depths, sessions

COUNTED = 10_000  # counted exactly; above it a count of a moment ago is shown
LIVE: tuple[Status, ...] = ("queued", "running", "retrying")


@dataclass(frozen=True, slots=True)
class Count:
    """A number, exact unless `at_least`."""

    number: int
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class Vitals:
    """The live states, the age of the oldest job that may run now, and how many breakers are open."""

    queued: Count
    running: Count
    retrying: Count
    oldest_seconds: float
    open_breakers: Count
    now: datetime


@cache
def _counting(*, walled: bool) -> Select[Any]:
    reach = Reach(0 if walled else None)
    bound: ColumnElement[Any] = literal_column(str(COUNTED + 1))
    live: list[Select[Any]] = [
        select(literal_column("1")).where(status_is(jobs, status), *reach.wall(jobs.c.tenant_id)).limit(bound)
        for status in LIVE
    ]
    opened: Select[Any] = (
        select(literal_column("1"))
        .join_from(breakers, sessions, sessions.c.id == breakers.c.session_id)
        .where(breakers.c.opened_at.is_not(None), *reach.wall(sessions.c.tenant_id))
        .limit(bound)
    )
    counts = [select(func.count()).select_from(one.subquery()).scalar_subquery() for one in (*live, opened)]
    return select(*counts, _oldest(reach).scalar_subquery(), func.now())


def _oldest(reach: Reach) -> Select[Any]:
    """Of each priority the first in its index, and the oldest of those."""
    ranks = sorted(set(PRIORITIES.values()))
    priorities = values(column("priority", SmallInteger), name="priorities").data([(rank,) for rank in ranks])
    since: ColumnElement[Any] = func.greatest(jobs.c.created_at, jobs.c.not_before)
    first = (
        select(since.label("since"))
        .where(
            READY,
            *reach.wall(jobs.c.tenant_id),
            jobs.c.priority == priorities.c.priority,
            jobs.c.not_before <= func.now(),
        )
        .order_by(jobs.c.not_before, jobs.c.id)
        .limit(literal_column("1"))
        .lateral("first")
    )
    age = cast(extract("epoch", func.now() - func.min(first.c.since)), Double)
    return (
        select(func.coalesce(age, literal_column("0.0", Double)))
        .select_from(priorities)
        .join(first, literal_column("true"))
    )


_KNOWN_DEPTH = select(queue_depths.c.waiting).where(
    queue_depths.c.tenant_id == literal_column(str(EVERYBODY), BigInteger)
)


async def vitals(conn: AsyncConnection, reach: Reach) -> Vitals:
    """The state now: one short statement, whatever lies in the tables."""
    *counts, oldest, now = (await conn.execute(_counting(walled=reach.is_walled), reach.values)).one()
    queued, running, retrying, opened = (Count(min(number, COUNTED), number > COUNTED) for number in counts)
    if queued.at_least and not reach.is_walled:
        known = (await conn.execute(_KNOWN_DEPTH)).scalar_one_or_none()
        queued = Count(max(known or 0, queued.number), at_least=True)
    return Vitals(queued, running, retrying, max(0.0, oldest), opened, now)
