"""What an agent knows beside its messages, kept per session under a kind and a key: files, plans, skills, memory.

Bodies are the JSON bytes that the producer sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BigInteger, LargeBinary, Text, bindparam, delete, func, literal_column, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store import bodies, plain
from compaction.store.tables import session_state

_SESSION = bindparam("b_session_id", type_=BigInteger)
_KIND = bindparam("b_kind", type_=Text)
_KEY = bindparam("b_key", type_=Text)
_PLACE = (session_state.c.session_id == _SESSION, session_state.c.kind == _KIND, session_state.c.key == _KEY)
_PUT = (
    upsert(session_state)
    .values(session_id=_SESSION, kind=_KIND, key=_KEY, body=bindparam("b_body", type_=LargeBinary))
    .on_conflict_do_update(
        index_elements=["session_id", "kind", "key"],
        set_={"body": literal_column("excluded.body"), "updated_at": func.now()},
    )
)
_GET = select(session_state.c.body).where(*_PLACE)
_DELETE = delete(session_state).where(*_PLACE)
_LOAD = (
    select(session_state.c.kind, session_state.c.key, session_state.c.body, session_state.c.updated_at)
    .where(session_state.c.session_id == _SESSION)
    .order_by(session_state.c.kind, session_state.c.key)
)


@dataclass(frozen=True, slots=True)
class StateEntry:
    """One entry: its kind, its key within the kind, its JSON bytes, and when it was put."""

    kind: str
    key: str
    body: bytes
    updated_at: datetime


async def put(conn: AsyncConnection, session_id: int, kind: str, key: str, body: bytes) -> None:
    """Stores an entry, in place of an earlier one of the same kind and key."""
    await conn.execute(_PUT, {**_place(session_id, kind, key), "b_body": bodies.pack(body)})


async def get(conn: AsyncConnection, session_id: int, kind: str, key: str) -> bytes | None:
    """The entry's JSON bytes as they were put; None when there is none."""
    packed: bytes | None = (await conn.execute(_GET, _place(session_id, kind, key))).scalar_one_or_none()
    return None if packed is None else bodies.unpack(packed)


async def remove(conn: AsyncConnection, session_id: int, kind: str, key: str) -> bool:
    """Removes an entry; False when there was none."""
    return (await conn.execute(_DELETE, _place(session_id, kind, key))).rowcount > 0


async def load(conn: AsyncConnection, session_id: int) -> list[StateEntry]:
    """All entries of the session, by kind and key."""
    rows = await conn.execute(_LOAD, {"b_session_id": session_id})
    return [StateEntry(kind, key, bodies.unpack(body), updated_at) for kind, key, body, updated_at in rows]


def _place(session_id: int, kind: str, key: str) -> dict[str, object]:
    return {"b_session_id": session_id, "b_kind": kind, "b_key": plain.text("key", key)}
