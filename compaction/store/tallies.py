"""Tallies: how jobs ended, counted once per period of five minutes, so that no page counts a million rows.

The leading worker counts periods that are over (`count_next`); what ended since is counted on the spot (`since`). Each
counted period has a row `counted` of everybody's, also when nothing ended in it: the newest of these is the mark.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    DateTime,
    Double,
    Numeric,
    Select,
    Text,
    bindparam,
    case,
    cast,
    delete,
    func,
    literal_column,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store.operator_tables import job_tallies
from compaction.store.reach import Reach
from compaction.store.tables import jobs, results, sessions

EVERYBODY = 0  # the rows that count all tenants; identities begin with 1
PERIOD_SECONDS = 300  # 288 rows a day and outcome: a day's chart has enough points, and sums stay small
SETTLED_SECONDS = 60  # twice the longest statement: what ended in a period has been committed by then
FIRST_DAYS = 7  # how far back the first count goes
KEPT_DAYS = 31  # as long as jobs are kept by default, and a day
STEP_PERIODS = 12  # counted at once: an hour, so that catching up never holds the leader for long
FRESH_SECONDS = 900  # the most that is counted on the spot: three periods


@dataclass(frozen=True, slots=True)
class Tally:
    """So many jobs that ended alike within a period. Tokens and dollars are sums over their results."""

    at: datetime
    outcome: str
    model: str
    jobs: int
    pre_tokens: int
    post_tokens: int
    cost_usd: Decimal
    unpriced: int


_AT = DateTime(timezone=True)
_FROM, _UNTIL = bindparam("b_from", type_=_AT), bindparam("b_until", type_=_AT)
_NONE: ColumnElement[Any] = literal_column("0", BigInteger)
_PERIOD: ColumnElement[Any] = literal_column(f"interval '{PERIOD_SECONDS} seconds'")
_EPOCH: ColumnElement[Any] = literal_column("timestamptz 'epoch'", _AT)
_OUTCOME = case(
    ((jobs.c.status == literal_column("'succeeded'")) & ~jobs.c.was_compacted, literal_column("'skipped'")),
    else_=jobs.c.status,
)


def _period(moment: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.date_bin(_PERIOD, moment, _EPOCH)


def _ended(reach: Reach) -> Select[Any]:
    """What ended from `b_from` until `b_until`, by tenant, period, outcome and model."""
    at = _period(jobs.c.ended_at)
    sums = (
        func.count().label("jobs"),
        cast(func.coalesce(func.sum(results.c.pre_tokens), _NONE), BigInteger).label("pre_tokens"),
        cast(func.coalesce(func.sum(results.c.post_tokens), _NONE), BigInteger).label("post_tokens"),
        cast(func.coalesce(func.sum(results.c.cost_usd), _NONE), Numeric(14, 6)).label("cost_usd"),
        func.count(results.c.job_id).filter(results.c.cost_usd.is_(None)).label("unpriced"),
    )
    return (
        select(jobs.c.tenant_id, at.label("at"), _OUTCOME.label("outcome"), sessions.c.model, *sums)
        .join(sessions, sessions.c.id == jobs.c.session_id)
        .outerjoin(results, results.c.job_id == jobs.c.id)
        .where(jobs.c.ended_at.is_not(None), jobs.c.ended_at >= _FROM, jobs.c.ended_at < _UNTIL)
        .where(*reach.wall(jobs.c.tenant_id))
        .group_by(jobs.c.tenant_id, at, _OUTCOME, sessions.c.model)
    )


_SUMS = ("jobs", "pre_tokens", "post_tokens", "cost_usd", "unpriced")
_KEY = ("tenant_id", "at", "outcome", "model")


def _write() -> Any:  # noqa: ANN401 - an Insert of Postgres's own dialect
    ended = _ended(Reach()).cte("ended")
    everybody: ColumnElement[Any] = literal_column(str(EVERYBODY), BigInteger)
    totals = select(
        everybody,
        ended.c.at,
        ended.c.outcome,
        ended.c.model,
        *(cast(func.sum(ended.c[name]), job_tallies.c[name].type) for name in _SUMS),
    ).group_by(ended.c.at, ended.c.outcome, ended.c.model)
    moments = func.generate_series(_FROM, _UNTIL - _PERIOD, _PERIOD).table_valued("at", name="moments").render_derived()
    marks = select(
        everybody,
        cast(moments.c.at, _AT),
        literal_column("'counted'", Text),
        literal_column("''", Text),
        *(cast(_NONE, job_tallies.c[name].type) for name in _SUMS),
    )
    own = select(*(ended.c[name] for name in (*_KEY, *_SUMS)))
    written = upsert(job_tallies).from_select([*_KEY, *_SUMS], union_all(own, totals, marks))
    return written.on_conflict_do_nothing(index_elements=list(_KEY))


_WRITE = _write()
_MARK = select(func.max(job_tallies.c.at) + _PERIOD).where(job_tallies.c.tenant_id == _NONE)
_OVER = _period(func.now() - literal_column(f"interval '{SETTLED_SECONDS} seconds'"))
_FIRST_END = select(_period(func.min(jobs.c.ended_at))).where(jobs.c.ended_at.is_not(None)).scalar_subquery()
_BEGIN = func.greatest(  # of the first count ever: the first end, a week ago at most; a period ago when nothing ended
    _period(func.now() - literal_column(f"interval '{FIRST_DAYS} days'")), func.coalesce(_FIRST_END, _OVER - _PERIOD)
)
_NEXT = select(func.coalesce(_MARK.scalar_subquery(), func.least(_BEGIN, _OVER - _PERIOD)), _OVER)
_PRUNE = delete(job_tallies).where(job_tallies.c.at < func.now() - literal_column(f"interval '{KEPT_DAYS} days'"))
_FRESH_FROM = select(
    func.greatest(_MARK.scalar_subquery(), func.now() - literal_column(f"interval '{FRESH_SECONDS} seconds'")),
    _MARK.scalar_subquery(),
    func.now(),
)


async def count_next(conn: AsyncConnection) -> bool:
    """Counts the next periods that are over, an hour at most; whether more are left. One transaction."""
    begin, over = (await conn.execute(_NEXT)).one()
    until = min(over, begin + timedelta(seconds=STEP_PERIODS * PERIOD_SECONDS))
    if begin >= until:
        return False
    await conn.execute(_WRITE, {"b_from": begin, "b_until": until})
    return bool(until < over)


async def prune(conn: AsyncConnection) -> int:
    """Deletes tallies that are older than any page shows; tells how many."""
    return (await conn.execute(_PRUNE)).rowcount


@dataclass(frozen=True, slots=True)
class Lately:
    """How jobs ended in the last hours. `missing_from`: what ended between then and `fresh_from` is not counted yet."""

    tallies: list[Tally]
    now: datetime
    missing_from: datetime | None = None
    fresh_from: datetime | None = None


async def lately(conn: AsyncConnection, reach: Reach, hours: float) -> Lately:
    """The tallies of the last `hours`, with what ended since the last count."""
    fresh_from, mark, now = (await conn.execute(_FRESH_FROM)).one()
    counted = select(*(job_tallies.c[name] for name in Tally.__dataclass_fields__)).where(
        job_tallies.c.tenant_id == bindparam("b_tenant_id", type_=BigInteger),
        job_tallies.c.at > func.now() - bindparam("b_hours", type_=Double) * literal_column("interval '1 hour'"),
        job_tallies.c.outcome != literal_column("'counted'"),
    )
    owner = EVERYBODY if reach.tenant_id is None else reach.tenant_id
    kept = [Tally(*row) for row in await conn.execute(counted, {"b_tenant_id": owner, "b_hours": hours})]
    fresh = await conn.execute(_ended(reach), {"b_from": fresh_from, "b_until": now, **reach.values})
    kept += [Tally(*row[1:]) for row in fresh]
    late = mark is None or mark < fresh_from
    begin = now - timedelta(hours=hours) if mark is None else mark
    return Lately(kept, now, begin if late else None, fresh_from if late else None)
