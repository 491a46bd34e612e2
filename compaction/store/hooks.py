"""A tenant's HTTP hooks. Their secrets come out for the one call that signs, and never in a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Double, Integer, LargeBinary, Text, bindparam, delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction import errors
from compaction.core.hooks import MAX_ENDPOINTS, Endpoint, Event
from compaction.store import bodies, cursors, plain
from compaction.store.tables import hooks, tenants


@dataclass(frozen=True, slots=True)
class HookRow:
    """A stored hook without its secret. Ids grow with time."""

    id: str
    event: Event
    url: str = field(repr=False)  # it may hold a token
    timeout_seconds: float
    enabled: bool
    created_at: datetime


_ROW = (hooks.c.id, hooks.c.event, hooks.c.url, hooks.c.timeout_s, hooks.c.enabled, hooks.c.created_at)
_ID = bindparam("b_hook_id", type_=hooks.c.id.type)
_TENANT_ID = bindparam("b_tenant_id", type_=BigInteger)
_LIMIT = bindparam("b_limit", type_=Integer)
_OURS = (hooks.c.id == _ID, hooks.c.tenant_id == _TENANT_ID)

_LOCK = select(tenants.c.id).where(tenants.c.id == _TENANT_ID).with_for_update(key_share=True)
_COUNT = select(func.count()).select_from(hooks).where(hooks.c.tenant_id == _TENANT_ID)
_ADD = (
    insert(hooks)
    .values(
        tenant_id=_TENANT_ID,
        event=bindparam("b_event", type_=Text),
        url=bindparam("b_url", type_=Text),
        secret=bindparam("b_secret", type_=LargeBinary),
        timeout_s=bindparam("b_timeout_seconds", type_=Double),
    )
    .returning(*_ROW)
)
_GET = select(*_ROW).where(*_OURS)
_REMOVE = delete(hooks).where(*_OURS)
_ENDPOINTS = (
    select(hooks.c.id, hooks.c.event, hooks.c.url, hooks.c.secret, hooks.c.timeout_s)
    .where(hooks.c.tenant_id == _TENANT_ID, hooks.c.enabled)
    .order_by(hooks.c.id)
    .limit(_LIMIT)
)


async def add(  # noqa: PLR0913 - what a hook is
    conn: AsyncConnection, tenant_id: int, *, event: Event, url: str, secret: str, timeout_seconds: float
) -> HookRow:
    """A new hook. Raises errors.Conflict when the tenant has as many as a job can ask.

    Call it in a transaction: it locks the tenant, so that two at once cannot both be the last.
    """
    await conn.execute(_LOCK, {"b_tenant_id": tenant_id})
    count = await conn.scalar(_COUNT, {"b_tenant_id": tenant_id})
    if count is not None and count >= MAX_ENDPOINTS:
        raise errors.Conflict(f"There are {count} hooks, which is the most a tenant can have. Remove one first.")
    values: dict[str, Any] = {
        "b_tenant_id": tenant_id,
        "b_event": event,
        "b_url": plain.text("url", url),
        "b_secret": bodies.pack(secret.encode()),
        "b_timeout_seconds": timeout_seconds,
    }
    return HookRow(*(await conn.execute(_ADD, values)).one())


async def get(conn: AsyncConnection, tenant_id: int, hook_id: str) -> HookRow | None:
    """The tenant's hook of that id."""
    known = plain.job_id(hook_id)
    if known is None:
        return None
    row = (await conn.execute(_GET, {"b_hook_id": known, "b_tenant_id": tenant_id})).one_or_none()
    return None if row is None else HookRow(*row)


async def list_hooks(
    conn: AsyncConnection, tenant_id: int, *, limit: int = 100, cursor: str | None = None
) -> tuple[list[HookRow], str | None]:
    """A page of the tenant's hooks, oldest first, and the cursor of the next page if there is one.

    Raises errors.InvalidRequest for a made-up cursor.
    """
    after = cursors.decode_uuid(cursor)
    statement = select(*_ROW).where(hooks.c.tenant_id == _TENANT_ID).order_by(hooks.c.id).limit(_LIMIT)
    values: dict[str, Any] = {"b_tenant_id": tenant_id, "b_limit": limit + 1}
    if after is not None:
        statement = statement.where(hooks.c.id > bindparam("b_after_id", type_=hooks.c.id.type))
        values["b_after_id"] = after
    listed = [HookRow(*row) for row in await conn.execute(statement, values)]
    page = listed[:limit]
    return page, cursors.encode_uuid(page[-1].id) if len(listed) > limit else None


async def remove(conn: AsyncConnection, tenant_id: int, hook_id: str) -> bool:
    """Removes the tenant's hook; False when there was none."""
    known = plain.job_id(hook_id)
    if known is None:
        return False
    return (await conn.execute(_REMOVE, {"b_hook_id": known, "b_tenant_id": tenant_id})).rowcount > 0


async def endpoints(conn: AsyncConnection, tenant_id: int) -> tuple[Endpoint, ...]:
    """The tenant's enabled hooks with their secrets, oldest first: what a job asks."""
    found = await conn.execute(_ENDPOINTS, {"b_tenant_id": tenant_id, "b_limit": MAX_ENDPOINTS})
    return tuple(
        Endpoint(hook_id, event, url, bodies.unpack(secret).decode(), timeout_seconds)
        for hook_id, event, url, secret, timeout_seconds in found
    )
