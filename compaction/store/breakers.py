"""Breakers: how often a session's automatic compactions failed in a row, and whether they are stopped."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import CTE, BigInteger, Text, Update, bindparam, case, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import Insert
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.breaker import MAX_FAILURES, BreakerState
from compaction.store import cursors
from compaction.store.tables import breakers, sessions


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """A session whose automatic compactions are stopped."""

    session_id: int
    session_name: str
    breaker: BreakerState


_SESSION_ID = bindparam("b_session_id", type_=BigInteger)
_STATE = (breakers.c.failures, breakers.c.opened_at, breakers.c.last_error_code)
_CLOSED = {"failures": 0, "opened_at": None, "last_error_code": None, "updated_at": func.now()}

_GET = select(*_STATE).where(breakers.c.session_id == _SESSION_ID)
_RESET = update(breakers).where(breakers.c.session_id == _SESSION_ID).values(_CLOSED)
_OPEN = (
    select(breakers.c.session_id, sessions.c.name, *_STATE)
    .join(sessions, sessions.c.id == breakers.c.session_id)
    .where(
        sessions.c.tenant_id == bindparam("b_tenant_id", type_=BigInteger),
        breakers.c.opened_at.is_not(None),
        breakers.c.session_id > bindparam("b_after_id", type_=BigInteger),
    )
    .order_by(breakers.c.session_id)
    .limit(bindparam("b_limit", type_=BigInteger))
)


def closing(done: CTE) -> Update:
    """Part of a finish: the sessions of the `done` jobs have their breakers closed."""
    return update(breakers).where(breakers.c.session_id == done.c.session_id).values(_CLOSED)


def failing(done: CTE) -> Insert:
    """Part of a finish: one failure more (`b_breaker_code`); the third in a row opens the breaker or opens it anew.

    The arithmetic of core.breaker.applied, done where the row is locked: an operator may reset it at the same moment.
    """
    failures = breakers.c.failures + literal_column("1")
    code = bindparam("b_breaker_code", type_=Text)
    first = select(done.c.session_id, literal_column("1"), code)
    counted = upsert(breakers).from_select(["session_id", "failures", "last_error_code"], first)
    return counted.on_conflict_do_update(
        index_elements=["session_id"],
        set_={
            "failures": failures,
            "opened_at": case((failures >= literal_column(str(MAX_FAILURES)), func.now()), else_=breakers.c.opened_at),
            "last_error_code": counted.excluded.last_error_code,
            "updated_at": func.now(),
        },
    )


async def get(conn: AsyncConnection, session_id: int) -> BreakerState:
    """The session's breaker; closed when nothing is stored."""
    row = (await conn.execute(_GET, {"b_session_id": session_id})).one_or_none()
    return BreakerState() if row is None else BreakerState(*row)


async def reset(conn: AsyncConnection, session_id: int) -> BreakerState:
    """Closes the session's breaker, as an operator does, and tells how it stands then."""
    await conn.execute(_RESET, {"b_session_id": session_id})
    return BreakerState()


async def list_open(
    conn: AsyncConnection, tenant_id: int, *, limit: int = 100, cursor: str | None = None
) -> tuple[list[OpenBreaker], str | None]:
    """The tenant's open breakers, oldest session first, and the cursor of the next page if there is one.

    Raises errors.InvalidRequest for a made-up cursor.
    """
    after = cursors.decode_number(cursor) or 0
    found = await conn.execute(_OPEN, {"b_tenant_id": tenant_id, "b_after_id": after, "b_limit": limit + 1})
    listed = [OpenBreaker(session_id, name, BreakerState(*state)) for session_id, name, *state in found]
    page = listed[:limit]
    return page, cursors.encode_number(page[-1].session_id) if len(listed) > limit else None
