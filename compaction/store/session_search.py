"""Sessions as lists show them: the newest ones, those with an open breaker, and a session's own jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Integer, Select, Text, and_, bindparam, case, func, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.breaker import BreakerState
from compaction.store import cursors, plain
from compaction.store.reach import TENANT_ID, Reach
from compaction.store.tables import breakers, results, sessions, tenants


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session as lists show it."""

    id: int
    tenant: str
    name: str
    model: str
    query_source: str | None
    head_seq: int
    live_job_id: str | None
    is_open: bool  # its breaker
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """A session whose automatic compactions are stopped, over all tenants within reach."""

    session_id: int
    tenant_id: int
    tenant: str
    session: str
    breaker: BreakerState


@dataclass(frozen=True, slots=True)
class Applied:
    """A result of a session, and whether its producer took it over."""

    job_id: str
    strategy: str
    pre_tokens: int
    post_tokens: int
    covers_through_seq: int
    created_at: datetime
    applied_at: datetime | None
    applied_through_seq: int | None


_LIMIT = bindparam("b_limit", type_=Integer)
_OPENED = breakers.c.opened_at.is_not(None)
_APPLIED = (
    select(*(results.c[name] for name in Applied.__dataclass_fields__))
    .join(sessions, sessions.c.id == results.c.session_id)
    .where(results.c.session_id == bindparam("b_session_id", type_=BigInteger), sessions.c.tenant_id == TENANT_ID)
    .order_by(results.c.created_at.desc())
    .limit(_LIMIT)
)


def _sessions(reach: Reach) -> Select[Any]:
    is_open = case((_OPENED, literal_column("true")), else_=literal_column("false"))
    named = {"tenant": tenants.c.name, "is_open": is_open}
    columns = [named[name] if name in named else sessions.c[name] for name in FoundSession.__dataclass_fields__]
    return (
        select(*columns)
        .join(tenants, tenants.c.id == sessions.c.tenant_id)
        .outerjoin(breakers, breakers.c.session_id == sessions.c.id)
        .where(*reach.wall(sessions.c.tenant_id), ~sessions.c.is_ephemeral)  # an inline job's is nobody's to open
        .order_by(sessions.c.id.desc())
        .limit(_LIMIT)
    )


async def list_sessions(
    conn: AsyncConnection, reach: Reach, *, name: str | None = None, limit: int = 50, cursor: str | None = None
) -> tuple[list[FoundSession], str | None]:
    """A page of sessions, newest first, and the next page's cursor if any; `name` finds those of exactly that name.

    Raises errors.InvalidRequest for a made-up cursor.
    """
    page = _sessions(reach)
    values = reach.values | {"b_limit": limit + 1}
    before = cursors.decode_number(cursor)
    if before is not None:
        page = page.where(sessions.c.id < bindparam("b_before_id", type_=BigInteger))
        values["b_before_id"] = before
    if name:
        page = page.where(sessions.c.name == bindparam("b_name", type_=Text))
        values["b_name"] = plain.text("session", name)
    listed = [FoundSession(*row) for row in await conn.execute(page, values)]
    kept = listed[:limit]
    return kept, cursors.encode_number(kept[-1].id) if len(listed) > limit else None


async def list_breakers(
    conn: AsyncConnection, reach: Reach, *, code: str | None = None, limit: int = 50, cursor: str | None = None
) -> tuple[list[OpenBreaker], str | None]:
    """A page of open breakers, oldest session first, and the next page's cursor if any; `code` of the last failure.

    Raises errors.InvalidRequest for a made-up cursor.
    """
    after = cursors.decode_number(cursor) or 0
    state = (breakers.c.failures, breakers.c.opened_at, breakers.c.last_error_code)
    page = (
        select(breakers.c.session_id, sessions.c.tenant_id, tenants.c.name, sessions.c.name, *state)
        .join(sessions, sessions.c.id == breakers.c.session_id)
        .join(tenants, tenants.c.id == sessions.c.tenant_id)
        .where(
            and_(_OPENED, breakers.c.session_id > bindparam("b_after_id", type_=BigInteger)),
            *reach.wall(sessions.c.tenant_id),
        )
    )
    values = reach.values | {"b_after_id": after, "b_limit": limit + 1}
    if code:
        page = page.where(breakers.c.last_error_code == bindparam("b_code", type_=Text))
        values["b_code"] = plain.text("code", code)
    rows = await conn.execute(page.order_by(breakers.c.session_id).limit(_LIMIT), values)
    listed = [OpenBreaker(*row[:4], BreakerState(*row[4:])) for row in rows]
    kept = listed[:limit]
    return kept, cursors.encode_number(kept[-1].session_id) if len(listed) > limit else None


async def count_breakers(conn: AsyncConnection, reach: Reach, most: int, *, code: str | None = None) -> int:
    """How many breakers are open, counted up to `most`."""
    opened = (
        select(breakers.c.session_id)
        .join(sessions, sessions.c.id == breakers.c.session_id)
        .where(_OPENED, *reach.wall(sessions.c.tenant_id))
    )
    values = reach.values | {"b_limit": most}
    if code:
        opened = opened.where(breakers.c.last_error_code == bindparam("b_code", type_=Text))
        values["b_code"] = plain.text("code", code)
    counted = select(func.count()).select_from(opened.limit(_LIMIT).subquery())
    count: int = (await conn.execute(counted, values)).scalar_one()
    return count


async def list_applied(conn: AsyncConnection, tenant_id: int, session_id: int, limit: int = 20) -> list[Applied]:
    """The newest results of the tenant's session."""
    values = {"b_tenant_id": tenant_id, "b_session_id": session_id, "b_limit": limit}
    return [Applied(*row) for row in await conn.execute(_APPLIED, values)]
