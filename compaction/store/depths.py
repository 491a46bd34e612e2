"""How many jobs wait, without counting them at each enqueue: a count of a moment ago, and what came since.

A fresh count is taken at most once in a while, by whoever enqueues (`refresh`). Tenants with few waiting jobs have no
row: their jobs are counted on the spot, up to their cap.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Delete,
    Double,
    Select,
    bindparam,
    case,
    cast,
    column,
    delete,
    exists,
    extract,
    func,
    literal_column,
    or_,
    select,
    table,
    tuple_,
    union_all,
)
from sqlalchemy.dialects.postgresql import UUID, Insert
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.backpressure import Caps, retry_after_seconds
from compaction.errors import CompactdError, TooManyRequests, Unavailable
from compaction.store.job_rows import WAITING, status_is
from compaction.store.leader import DEPTHS_LOCK, LOCK_SPACE
from compaction.store.tables import jobs, lease_tokens, queue_depths

EVERYBODY = 0  # the row that counts all tenants; identities begin with 1
ROW_FROM = 500  # waiting jobs of a tenant; fewer are counted on the spot within 0.1 ms
FRESH_SECONDS = 2.0  # a count of 50,000 takes 10 ms
SETTLED_SECONDS = 1.0  # longer than an enqueue takes from its id to its commit, some milliseconds
SMOOTHING = 0.5  # of the newest measurement in the pace at which jobs are taken

_NIL = literal_column("'00000000-0000-0000-0000-000000000000'::uuid", UUID(as_uuid=False))
_NONE: ColumnElement[Any] = literal_column("0", BigInteger)
_EVERYBODY: ColumnElement[Any] = literal_column(str(EVERYBODY), BigInteger)
_FALSE: ColumnElement[Any] = literal_column("false", Boolean)
_TENANT_ID = bindparam("b_tenant_id", type_=BigInteger)
_SETTLED_AGO: ColumnElement[Any] = literal_column(f"interval '-{SETTLED_SECONDS} seconds'")


def _known(name: str, owner: ColumnElement[Any], otherwise: ColumnElement[Any]) -> ColumnElement[Any]:
    found = select(queue_depths.c[name]).where(queue_depths.c.tenant_id == owner).scalar_subquery()
    return func.coalesce(found, otherwise)


def _is_full(owner: ColumnElement[Any], cap: ColumnElement[Any], *, everybody: bool) -> ColumnElement[bool]:
    """Whether `cap` jobs wait: the known ones, and the newer ones up to what is missing."""
    newer = jobs.alias("newer")
    left = cap - _known("waiting", owner, _NONE)
    known = _known("through_id", owner, _NIL)
    last: Select[Any] = select(literal_column("1")).select_from(newer).where(status_is(newer, "queued"))
    if everybody:
        last = last.where(newer.c.id > known).order_by(newer.c.id)
    else:  # one range of (tenant_id, id): conditions apart would let the planner read everybody's newer jobs
        place = (newer.c.tenant_id, newer.c.id)
        last = last.where(tuple_(*place) > tuple_(owner, known), newer.c.tenant_id <= owner).order_by(*place)
    last = last.offset(func.greatest(left - literal_column("1"), _NONE)).limit(literal_column("1"))
    return or_(left <= _NONE, exists(last))


_TENANT_CAP = bindparam("b_tenant_cap", type_=BigInteger)
_EVERYBODY_CAP = bindparam("b_everybody_cap", type_=BigInteger)
_TENANT_IS_FULL = case((_TENANT_CAP.is_(None), _FALSE), else_=_is_full(_TENANT_ID, _TENANT_CAP, everybody=False))


def is_full() -> ColumnElement[bool]:
    """A condition of an enqueue: `b_tenant_cap` or `b_everybody_cap` waiting jobs are reached; NULL is no cap."""
    full = _is_full(_EVERYBODY, _EVERYBODY_CAP, everybody=True)
    return or_(_TENANT_IS_FULL, case((_EVERYBODY_CAP.is_(None), _FALSE), else_=full))


def cap_values(caps: Caps) -> dict[str, int | None]:
    """The values that `is_full` needs, beside the tenant."""
    return {"b_tenant_cap": caps.tenant, "b_everybody_cap": caps.everybody}


def _pace() -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """Jobs that are taken per second, smoothed, and the newest fencing token, from which it is told next time."""
    token = select(column("last_value", BigInteger)).select_from(table(lease_tokens.name)).scalar_subquery()
    before, seconds = queue_depths.c.last_token, extract("epoch", func.now() - queue_depths.c.at)
    newest = (token - before) / func.greatest(cast(seconds, Double), literal_column("0.1"))
    share: ColumnElement[Any] = literal_column(str(SMOOTHING))
    smoothed: ColumnElement[Any] = (literal_column("1") - share) * queue_depths.c.taken_per_second + share * newest
    known = select(smoothed).where(queue_depths.c.tenant_id == _EVERYBODY).scalar_subquery()
    return func.coalesce(known, _NONE), token


def _count() -> tuple[Delete, Insert]:
    """Statements that write the count anew, of the jobs old enough that none of them can still come to light.

    A job whose id is younger is counted on the spot: an enqueue that is not committed yet when the count begins would
    otherwise be neither in the count nor behind it.
    """
    settled = select(func.uuidv7(_SETTLED_AGO).label("through_id")).cte().prefix_with("MATERIALIZED")
    through = select(settled.c.through_id).scalar_subquery()
    waiting = select(jobs.c.tenant_id, func.count().label("waiting")).where(WAITING, jobs.c.id <= through)
    counted = waiting.group_by(jobs.c.tenant_id).cte()
    total = select(_EVERYBODY, func.coalesce(cast(func.sum(counted.c.waiting), BigInteger), _NONE))
    large = select(counted.c.tenant_id, counted.c.waiting).where(counted.c.waiting >= literal_column(str(ROW_FROM)))
    rows = union_all(large, total).subquery()
    pace, token = _pace()
    names = ["tenant_id", "waiting", "through_id", "taken_per_second", "last_token"]
    new = upsert(queue_depths).from_select(names, select(*rows.c, through, pace, token))
    updated = {name: new.excluded[name] for name in names[1:]} | {"at": func.now()}
    old = queue_depths.c.at < func.now()
    return (
        delete(queue_depths).where(old, queue_depths.c.tenant_id != _EVERYBODY),
        new.on_conflict_do_update(index_elements=["tenant_id"], set_=updated),
    )


_LOCK = select(
    func.pg_try_advisory_xact_lock(literal_column(str(LOCK_SPACE)), literal_column(str(DEPTHS_LOCK))),
    exists().where(
        queue_depths.c.tenant_id == _EVERYBODY,
        queue_depths.c.at > func.now() - literal_column(f"interval '{FRESH_SECONDS} seconds'"),
    ),
)
_CLEAR, _COUNT = _count()


_REFUSED = select(
    _TENANT_IS_FULL,
    _known("waiting", _TENANT_ID, _TENANT_CAP),
    _known("waiting", _EVERYBODY, _EVERYBODY_CAP),
    _known("taken_per_second", _EVERYBODY, literal_column("0.0", Double)),
)


async def refresh(conn: AsyncConnection) -> bool:
    """Counts the waiting jobs anew unless somebody just has; call it in a transaction of its own."""
    free, fresh = (await conn.execute(_LOCK)).one()
    if not free or fresh:
        return False
    await conn.execute(_COUNT)
    await conn.execute(_CLEAR)
    return True


async def refusal(conn: AsyncConnection, tenant_id: int, caps: Caps) -> CompactdError:
    """Why an enqueue was refused: errors.TooManyRequests for the tenant's own cap, errors.Unavailable for all's."""
    values = {"b_tenant_id": tenant_id, **cap_values(caps)}
    tenant_is_full, waiting, everybody, pace = (await conn.execute(_REFUSED, values)).one()
    if tenant_is_full:
        text = f"{caps.tenant} jobs of this tenant wait already. Try again when some have been taken."
        return TooManyRequests(text, retry_after_seconds=retry_after_seconds(waiting, pace))
    text = "The queue is full. Try again when some jobs have been taken."
    return Unavailable(text, retry_after_seconds=retry_after_seconds(everybody or 0, pace))
