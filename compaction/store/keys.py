"""A tenant's API keys after they were made: listed and revoked. Making and checking one is in `store.tenants`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Integer, Text, bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store import cursors
from compaction.store.tables import api_keys


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A stored key without anything secret. `last_used_at` is right to the minute."""

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
_REVOKE = (
    update(api_keys)
    .where(api_keys.c.tenant_id == _TENANT_ID, api_keys.c.public_id == bindparam("b_public_id", type_=Text))
    .values(revoked_at=func.coalesce(api_keys.c.revoked_at, func.now()))
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

    Revoking again changes nothing: the first time stays. A bootstrap key stays revoked when the service starts again.
    """
    if _PUBLIC_ID.fullmatch(public_id) is None:
        return False
    return (await conn.execute(_REVOKE, {"b_tenant_id": tenant_id, "b_public_id": public_id})).rowcount > 0
