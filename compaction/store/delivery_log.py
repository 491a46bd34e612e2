"""The log of an endpoint: what was sent, how often, and what came of it; never what a receiver answered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Delete, Double, Integer, bindparam, delete, func, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.webhooks import DeliveryStatus
from compaction.store import cursors, plain
from compaction.store.tables import webhook_deliveries


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One entry of an endpoint's log: what was sent, how often, and the code of the last failure; no bodies."""

    id: str
    endpoint_id: str
    job_id: str | None
    event: str
    status: DeliveryStatus
    attempts: int
    not_before: datetime
    last_error: str | None
    last_status: int | None
    created_at: datetime
    ended_at: datetime | None


_TABLE = webhook_deliveries
_TENANT_ID = bindparam("b_tenant_id", type_=BigInteger)
_LIMIT = bindparam("b_limit", type_=Integer)
_ROW = tuple(_TABLE.c[name] for name in DeliveryRow.__dataclass_fields__)
_LOG = select(*_ROW).where(
    _TABLE.c.endpoint_id == bindparam("b_endpoint_id", type_=_TABLE.c.endpoint_id.type),
    _TABLE.c.tenant_id == _TENANT_ID,
)
_GET = select(*_ROW).where(
    _TABLE.c.id == bindparam("b_delivery_id", type_=_TABLE.c.id.type), _TABLE.c.tenant_id == _TENANT_ID
)


async def list_deliveries(
    conn: AsyncConnection, tenant_id: int, endpoint_id: str, *, limit: int = 100, cursor: str | None = None
) -> tuple[list[DeliveryRow], str | None]:
    """A page of the endpoint's log, newest first, and the cursor of the next page if there is one.

    Raises errors.InvalidRequest for a made-up cursor.
    """
    before = cursors.decode_uuid(cursor)
    known = plain.job_id(endpoint_id)
    if known is None:
        return [], None
    statement = _LOG
    values: dict[str, Any] = {"b_endpoint_id": known, "b_tenant_id": tenant_id, "b_limit": limit + 1}
    if before is not None:
        statement = statement.where(_TABLE.c.id < bindparam("b_before_id", type_=_TABLE.c.id.type))
        values["b_before_id"] = before
    found = await conn.execute(statement.order_by(_TABLE.c.id.desc()).limit(_LIMIT), values)
    listed = [DeliveryRow(*row) for row in found]
    page = listed[:limit]
    return page, cursors.encode_uuid(page[-1].id) if len(listed) > limit else None


async def get(conn: AsyncConnection, tenant_id: int, delivery_id: str) -> DeliveryRow | None:
    """The tenant's delivery of that id."""
    row = (await conn.execute(_GET, {"b_delivery_id": delivery_id, "b_tenant_id": tenant_id})).one_or_none()
    return None if row is None else DeliveryRow(*row)


def _prune() -> Delete:
    age = bindparam("b_age_seconds", type_=Double) * literal_column("interval '1 second'")
    old = (
        select(_TABLE.c.id)
        .where(_TABLE.c.id < func.uuidv7(-age), _TABLE.c.status != literal_column("'pending'"))
        .order_by(_TABLE.c.id)
        .limit(_LIMIT)
    )
    return delete(_TABLE).where(_TABLE.c.id.in_(old))


_PRUNE = _prune()


async def prune(conn: AsyncConnection, age_seconds: float, limit: int) -> int:
    """Deletes up to `limit` deliveries that are older and have ended; tells how many."""
    return (await conn.execute(_PRUNE, {"b_age_seconds": age_seconds, "b_limit": limit})).rowcount
