"""A tenant's webhook endpoints. Their secrets come out for the one call that signs, and never in a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Double,
    Integer,
    LargeBinary,
    Text,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningUpdate

from compaction import errors
from compaction.core.webhooks import MAX_ENDPOINTS, DisabledReason, Event
from compaction.store import bodies, cursors, plain
from compaction.store.tables import tenants, webhook_deliveries, webhook_endpoints


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """A stored endpoint without its secrets. Ids grow with time.

    `failing_since` is the first failure after the last success; until `old_secret_until` two secrets sign.
    """

    id: str
    url: str = field(repr=False)  # it may hold a token
    events: tuple[Event, ...]
    enabled: bool
    disabled_reason: DisabledReason | None
    failing_since: datetime | None
    old_secret_until: datetime | None
    created_at: datetime
    updated_at: datetime


_TABLE = webhook_endpoints
_ROW = tuple(_TABLE.c[name] for name in EndpointRow.__dataclass_fields__)
_ID = bindparam("b_endpoint_id", type_=_TABLE.c.id.type)
_TENANT_ID = bindparam("b_tenant_id", type_=BigInteger)
_OURS = (_TABLE.c.id == _ID, _TABLE.c.tenant_id == _TENANT_ID)
_ENABLE = bindparam("b_enabled", type_=Boolean)

_LOCK = select(tenants.c.id).where(tenants.c.id == _TENANT_ID).with_for_update(key_share=True)
_COUNT = select(func.count()).select_from(_TABLE).where(_TABLE.c.tenant_id == _TENANT_ID)
_ADD = (
    insert(_TABLE)
    .values(
        tenant_id=_TENANT_ID,
        url=bindparam("b_url", type_=Text),
        events=bindparam("b_events", type_=ARRAY(Text)),
        secret=bindparam("b_secret", type_=LargeBinary),
    )
    .returning(*_ROW)
)
_GET = select(*_ROW).where(*_OURS)
_ROTATE = (
    update(_TABLE)
    .where(*_OURS)
    .values(
        old_secret=_TABLE.c.secret,
        old_secret_until=func.now()
        + bindparam("b_overlap_seconds", type_=Double) * literal_column("interval '1 second'"),
        secret=bindparam("b_secret", type_=LargeBinary),
        updated_at=func.now(),
    )
    .returning(*_ROW)
)
_REMOVE = delete(_TABLE).where(*_OURS)
_FORGET = delete(webhook_deliveries).where(
    webhook_deliveries.c.endpoint_id == _ID, webhook_deliveries.c.tenant_id == _TENANT_ID
)
_DROP = (
    update(webhook_deliveries)
    .where(
        webhook_deliveries.c.endpoint_id == _ID,
        webhook_deliveries.c.tenant_id == _TENANT_ID,
        webhook_deliveries.c.status == literal_column("'pending'"),
    )
    .values(
        status=literal_column("'dropped'"),
        last_error=func.coalesce(webhook_deliveries.c.last_error, literal_column("'endpoint_disabled'")),
        ended_at=func.now(),
    )
)


def _change() -> ReturningUpdate[Any]:
    on: ColumnElement[Any] = _ENABLE.is_(True)
    off: ColumnElement[Any] = _ENABLE.is_(False)
    return (
        update(_TABLE)
        .where(*_OURS)
        .values(
            url=func.coalesce(bindparam("b_url", type_=Text), _TABLE.c.url),
            events=func.coalesce(bindparam("b_events", type_=ARRAY(Text)), _TABLE.c.events),
            enabled=func.coalesce(_ENABLE, _TABLE.c.enabled),
            disabled_reason=case((on, None), (off, literal_column("'owner'", Text)), else_=_TABLE.c.disabled_reason),
            failing_since=case((on, None), else_=_TABLE.c.failing_since),
            updated_at=func.now(),
        )
        .returning(*_ROW)
    )


_CHANGE = _change()


async def add(conn: AsyncConnection, tenant_id: int, *, url: str, events: Sequence[Event], secret: str) -> EndpointRow:
    """A new endpoint. Raises errors.Conflict when the tenant has as many as one may have.

    Call it in a transaction: it locks the tenant, so that two at once cannot both be the last.
    """
    await conn.execute(_LOCK, {"b_tenant_id": tenant_id})
    count = await conn.scalar(_COUNT, {"b_tenant_id": tenant_id})
    if count is not None and count >= MAX_ENDPOINTS:
        raise errors.Conflict(f"There are {count} webhooks, which is the most a tenant can have. Remove one first.")
    values: dict[str, Any] = {
        "b_tenant_id": tenant_id,
        "b_url": plain.text("url", url),
        "b_events": sorted(set(events)),
        "b_secret": bodies.pack(secret.encode()),
    }
    return _row(await conn.execute(_ADD, values))


async def get(conn: AsyncConnection, tenant_id: int, endpoint_id: str) -> EndpointRow | None:
    """The tenant's endpoint of that id."""
    place = _place(tenant_id, endpoint_id)
    return None if place is None else _row_or_none(await conn.execute(_GET, place))


async def list_endpoints(
    conn: AsyncConnection, tenant_id: int, *, limit: int = 100, cursor: str | None = None
) -> tuple[list[EndpointRow], str | None]:
    """A page of the tenant's endpoints, oldest first, and the cursor of the next page if there is one.

    Raises errors.InvalidRequest for a made-up cursor.
    """
    after = cursors.decode_uuid(cursor)
    limited = bindparam("b_limit", type_=Integer)
    statement = select(*_ROW).where(_TABLE.c.tenant_id == _TENANT_ID).order_by(_TABLE.c.id).limit(limited)
    values: dict[str, Any] = {"b_tenant_id": tenant_id, "b_limit": limit + 1}
    if after is not None:
        statement = statement.where(_TABLE.c.id > bindparam("b_after_id", type_=_TABLE.c.id.type))
        values["b_after_id"] = after
    listed = [_endpoint(row) for row in await conn.execute(statement, values)]
    page = listed[:limit]
    return page, cursors.encode_uuid(page[-1].id) if len(listed) > limit else None


async def change(  # noqa: PLR0913 - what can be changed
    conn: AsyncConnection,
    tenant_id: int,
    endpoint_id: str,
    *,
    url: str | None = None,
    events: Sequence[Event] | None = None,
    enabled: bool | None = None,
) -> EndpointRow | None:
    """Changes what is given; None when there is no such endpoint. Call it in a transaction.

    Switched on, it begins without failures; switched off, it gets no news, and what waited for it is dropped.
    """
    place = _place(tenant_id, endpoint_id)
    if place is None:
        return None
    values = place | {
        "b_url": plain.optional_text("url", url),
        "b_events": None if events is None else sorted(set(events)),
        "b_enabled": enabled,
    }
    row = _row_or_none(await conn.execute(_CHANGE, values))
    if row is not None and enabled is False:
        await conn.execute(_DROP, place)
    return row


async def rotate(
    conn: AsyncConnection, tenant_id: int, endpoint_id: str, *, secret: str, overlap_seconds: float
) -> EndpointRow | None:
    """Gives the endpoint another secret; the one it had signs beside it for `overlap_seconds` more."""
    place = _place(tenant_id, endpoint_id)
    if place is None:
        return None
    values = place | {"b_secret": bodies.pack(secret.encode()), "b_overlap_seconds": overlap_seconds}
    return _row_or_none(await conn.execute(_ROTATE, values))


async def remove(conn: AsyncConnection, tenant_id: int, endpoint_id: str) -> bool:
    """Removes the tenant's endpoint with its log; False when there was none. Call it in a transaction."""
    place = _place(tenant_id, endpoint_id)
    if place is None or (await conn.execute(_REMOVE, place)).rowcount == 0:
        return False
    await conn.execute(_FORGET, place)
    return True


def _place(tenant_id: int, endpoint_id: str) -> dict[str, Any] | None:
    known = plain.job_id(endpoint_id)
    return None if known is None else {"b_endpoint_id": known, "b_tenant_id": tenant_id}


def _row(found: Any) -> EndpointRow:  # noqa: ANN401 - a cursor's result
    return _endpoint(found.one())


def _row_or_none(found: Any) -> EndpointRow | None:  # noqa: ANN401 - a cursor's result
    row = found.one_or_none()
    return None if row is None else _endpoint(row)


def _endpoint(row: Any) -> EndpointRow:  # noqa: ANN401 - a row of any statement with these columns
    endpoint_id, url, events, *rest = row
    return EndpointRow(endpoint_id, url, tuple(events), *rest)
