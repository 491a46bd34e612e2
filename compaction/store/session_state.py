"""What an agent knows beside its messages, kept per session under a kind and a key: files, plans, skills, memory.

Bodies are the JSON bytes that the producer sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Delete,
    LargeBinary,
    Text,
    bindparam,
    column,
    delete,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY, Insert
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


def _forgotten() -> ColumnElement[bool]:
    """Entries of `b_kinds` and `b_keys`, pair by pair, and those whose keys lie below them."""
    place = (
        func.unnest(bindparam("b_kinds", type_=ARRAY(Text)), bindparam("b_keys", type_=ARRAY(Text)))
        .table_valued(column("kind", Text), column("key", Text), name="place")
        .render_derived()
    )
    below = func.starts_with(session_state.c.key, place.c.key.op("||")(literal_column("'/'")))
    same = session_state.c.kind == place.c.kind
    return select(place.c.kind).where(same, or_(session_state.c.key == place.c.key, below)).exists()


_CLEAR = delete(session_state).where(session_state.c.session_id == _SESSION, _forgotten())


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


async def clear(conn: AsyncConnection, session_id: int, entries: Sequence[tuple[str, str]]) -> int:
    """Removes the (kind, key) entries and whatever lies below their keys (`key/…`); tells how many there were."""
    return (await conn.execute(_CLEAR, {"b_session_id": session_id, **clearing_values(entries)})).rowcount


def clearing(done: CTE) -> Delete:
    """Part of a finish: the sessions of the `done` jobs forget what `clearing_values` names."""
    return delete(session_state).where(session_state.c.session_id == done.c.session_id, _forgotten())


def clearing_values(entries: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The values that `clearing` needs."""
    return {"b_kinds": [kind for kind, _ in entries], "b_keys": [key for _, key in entries]}


def remembering(done: CTE) -> Insert:
    """Part of a finish: the session of the `done` job gets the entry that `remembering_values` names."""
    values = [bindparam(f"b_state_{name}", type_=session_state.c[name].type) for name in ("kind", "key", "body")]
    put = upsert(session_state).from_select(["session_id", "kind", "key", "body"], select(done.c.session_id, *values))
    return put.on_conflict_do_update(
        index_elements=["session_id", "kind", "key"],
        set_={"body": literal_column("excluded.body"), "updated_at": func.now()},
    )


def remembering_values(kind: str, key: str, body: bytes) -> dict[str, Any]:
    """The values that `remembering` needs."""
    return {"b_state_kind": kind, "b_state_key": plain.text("key", key), "b_state_body": bodies.pack(body)}


def _place(session_id: int, kind: str, key: str) -> dict[str, object]:
    return {"b_session_id": session_id, "b_kind": kind, "b_key": plain.text("key", key)}
