"""A tenant's API keys after they were made: listed, rotated and revoked. Making and checking one: `store.tenants`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Double,
    Integer,
    Text,
    and_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store import cursors
from compaction.store.tables import api_keys


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A stored key without anything secret. `last_used_at` is right to the minute; `revoked_at` may lie ahead."""

    public_id: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


_PUBLIC_ID = re.compile(r"[a-z0-9]{8}")
_TENANT_ID = bindparam("b_tenant_id", type_=BigInteger)
_PAGE = (
    select(
        api_keys.c.id,
        api_keys.c.public_id,
        api_keys.c.scopes,
        api_keys.c.created_at,
        api_keys.c.expires_at,
        api_keys.c.last_used_at,
        api_keys.c.revoked_at,
    )
    .where(api_keys.c.tenant_id == _TENANT_ID)
    .order_by(api_keys.c.id)
    .limit(bindparam("b_limit", type_=Integer))
)
_OURS = (api_keys.c.tenant_id == _TENANT_ID, api_keys.c.public_id == bindparam("b_public_id", type_=Text))
# The earliest time stays, also when a rotation has set one that is still to come.
_REVOKE = update(api_keys).where(*_OURS).values(revoked_at=func.least(api_keys.c.revoked_at, func.now()))
_VALID = (
    or_(api_keys.c.revoked_at.is_(None), api_keys.c.revoked_at > func.now()),
    or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > func.now()),
)
_LOCK = select(api_keys.c.scopes, api_keys.c.expires_at, and_(*_VALID)).where(*_OURS).with_for_update()
_RETIRE = (
    update(api_keys)
    .where(*_OURS)
    .values(
        revoked_at=func.least(
            api_keys.c.revoked_at,
            func.now() + bindparam("b_grace_seconds", type_=Double) * literal_column("interval '1 second'"),
        )
    )
)


async def list_keys(
    conn: AsyncConnection, tenant_id: int, *, limit: int = 100, cursor: str | None = None
) -> tuple[list[KeyRow], str | None]:
    """A page of the tenant's keys, oldest first, revoked and expired ones too, and the next page's cursor if any.

    Raises errors.InvalidRequest for a made-up cursor.
    """
    after = cursors.decode_number(cursor)
    statement = _PAGE
    values: dict[str, Any] = {"b_tenant_id": tenant_id, "b_limit": limit + 1}
    if after is not None:
        statement = statement.where(api_keys.c.id > bindparam("b_after_id", type_=BigInteger))
        values["b_after_id"] = after
    listed = (await conn.execute(statement, values)).all()
    page = listed[:limit]
    following = cursors.encode_number(page[-1][0]) if len(listed) > limit else None
    return [KeyRow(public_id, tuple(scopes), *times) for _, public_id, scopes, *times in page], following


async def revoke(conn: AsyncConnection, tenant_id: int, public_id: str) -> bool:
    """Makes the tenant's key worth nothing, from its next call on; False when there is none of this public id.

    Revoking again changes nothing: the first time stays, unless it lies ahead. A bootstrap key stays revoked when the
    service starts again.
    """
    if _PUBLIC_ID.fullmatch(public_id) is None:
        return False
    return (await conn.execute(_REVOKE, {"b_tenant_id": tenant_id, "b_public_id": public_id})).rowcount > 0


@dataclass(frozen=True, slots=True)
class Rotating:
    """A key that is to be replaced: what its successor takes over, and whether it still opens anything."""

    scopes: tuple[str, ...]
    expires_at: datetime | None
    valid: bool


async def look_up(conn: AsyncConnection, tenant_id: int, public_id: str) -> Rotating | None:
    """The tenant's key of this public id, locked until the transaction ends; None when there is none."""
    if _PUBLIC_ID.fullmatch(public_id) is None:
        return None
    row = (await conn.execute(_LOCK, {"b_tenant_id": tenant_id, "b_public_id": public_id})).one_or_none()
    return None if row is None else Rotating(tuple(row[0]), row[1], row[2])


async def retire(conn: AsyncConnection, tenant_id: int, public_id: str, grace_seconds: float) -> None:
    """Lets the tenant's key live for `grace_seconds` more, or less if it was to end sooner."""
    values = {"b_tenant_id": tenant_id, "b_public_id": public_id, "b_grace_seconds": grace_seconds}
    await conn.execute(_RETIRE, values)
