"""Leadership: one worker's reconciler leads, by an advisory lock that falls with its connection.

A process that is frozen keeps its connection open, and with it the lock. So Postgres itself ends the connection of a
leader that says nothing for a while (`idle_session_timeout`): leadership is a lease that each question renews.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Integer,
    Text,
    bindparam,
    case,
    cast,
    column,
    exists,
    func,
    literal_column,
    select,
    table,
)
from sqlalchemy.dialects.postgresql import OID
from sqlalchemy.ext.asyncio import AsyncConnection

LOCK_SPACE = 0x63707464  # "cptd": our advisory locks among those of others in the same database
LEADER_LOCK = 1
MIGRATION_LOCK = 2  # taken by migrations/env.py
DEPTHS_LOCK = 3  # one count of the queue at a time (store/depths.py)

_SPACE = cast(literal_column(str(LOCK_SPACE)), Integer)
_LOCK = cast(literal_column(str(LEADER_LOCK)), Integer)
_held = table(
    "pg_locks",
    column("locktype"),
    column("pid", Integer),
    column("granted", Boolean),
    column("classid", OID),
    column("objid", OID),
)
_HOLDS = exists().where(
    _held.c.locktype == literal_column("'advisory'"),
    _held.c.granted,
    _held.c.pid == func.pg_backend_pid(),
    cast(_held.c.classid, BigInteger) == literal_column(str(LOCK_SPACE)),
    cast(_held.c.objid, BigInteger) == literal_column(str(LEADER_LOCK)),
)
_TRY = select(case((_HOLDS, literal_column("true")), else_=func.pg_try_advisory_lock(_SPACE, _LOCK)))
_RESIGN = select(func.pg_advisory_unlock(_SPACE, _LOCK))
_SILENCE = select(
    func.set_config(
        literal_column("'idle_session_timeout'"), bindparam("b_milliseconds", type_=Text), literal_column("false")
    )
)


async def try_lead(conn: AsyncConnection, silence_seconds: float) -> bool:
    """Whether this connection leads now. It may ask again: the lock is taken once.

    It leads until it resigns, is closed, or does not ask for `silence_seconds`: then Postgres closes it. Keep the
    connection, do not give it back to the pool.
    """
    leads: bool = (await conn.execute(_TRY)).scalar_one()
    if leads:
        await conn.execute(_SILENCE, {"b_milliseconds": str(max(1, int(silence_seconds * 1000)))})
    return leads


async def resign(conn: AsyncConnection) -> None:
    """Lets another one lead; the connection may go back to the pool then."""
    await conn.execute(_SILENCE, {"b_milliseconds": "0"})
    await conn.execute(_RESIGN)


async def step_down(conn: AsyncConnection) -> None:
    """Gives the lead up however the turn ended: a connection that cannot say so is thrown away with its lock."""
    try:
        await resign(conn)
    except Exception:  # noqa: BLE001 - whatever it is, the connection must not go back to the pool and hold the lead
        await conn.invalidate()
