"""Histories: appending messages and reading them back, as bytes from the producer to the request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Integer,
    LargeBinary,
    Text,
    bindparam,
    column,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction import errors
from compaction.store import bodies, plain
from compaction.store.appending import Appended, AppendPlan, Known, NewMessage, plan
from compaction.store.job_rows import ACTIVE
from compaction.store.session_rows import SessionRow
from compaction.store.tables import jobs, messages, results, sessions

MAX_BATCH_MESSAGES = 20_000  # ten times the longest real session log; keeps one transaction below a few seconds


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a history: its seq and its exact JSON bytes."""

    seq: int
    body: bytes = field(repr=False)


_SESSION = bindparam("b_session_id", type_=BigInteger)
_LOCK = (
    select(sessions.c.head_seq, sessions.c.boundary_seq)
    .where(sessions.c.id == _SESSION)
    .with_for_update(key_share=True)  # not the key: enqueues, which only refer to the session, need not wait
)
_KNOWN = select(messages.c.uuid, messages.c.seq, messages.c.partial).where(
    messages.c.session_id == _SESSION, messages.c.uuid == func.any(bindparam("b_uuids", type_=ARRAY(Text)))
)
_COVERED = select(
    func.greatest(
        select(func.max(jobs.c.covers_through_seq)).where(jobs.c.session_id == _SESSION, ACTIVE).scalar_subquery(),
        select(func.max(results.c.covers_through_seq))
        .where(results.c.job_id == sessions.c.live_job_id, sessions.c.id == _SESSION)
        .scalar_subquery(),
        literal_column("0"),
    )
)
_FACTS: tuple[Column[object], ...] = (
    messages.c.uuid,
    messages.c.role,
    messages.c.partial,
    messages.c.starts_live,
    messages.c.body_bytes,
    messages.c.body,
)
_BATCH = (
    func.unnest(
        bindparam("b_uuids", type_=ARRAY(Text)),
        bindparam("b_roles", type_=ARRAY(Text)),
        bindparam("b_partials", type_=ARRAY(Boolean)),
        bindparam("b_starts", type_=ARRAY(Boolean)),
        bindparam("b_sizes", type_=ARRAY(Integer)),
        bindparam("b_bodies", type_=ARRAY(LargeBinary)),
        bindparam("b_seqs", type_=ARRAY(BigInteger)),
    )
    .table_valued(*(column(fact.name, fact.type) for fact in _FACTS), column("seq", BigInteger))
    .render_derived(name="batch")
)
_ADDED = (
    insert(messages)
    .from_select(
        ["session_id", "seq", *(fact.name for fact in _FACTS)],
        select(_SESSION, _BATCH.c.seq, *(_BATCH.c[fact.name] for fact in _FACTS)),
    )
    .cte("added")
)
_HEAD = (
    update(sessions)
    .where(sessions.c.id == _SESSION)
    .values(
        head_seq=bindparam("b_head_seq", type_=BigInteger),
        boundary_seq=bindparam("b_boundary_seq", type_=BigInteger),
        updated_at=func.now(),
    )
)
_ADD = _HEAD.add_cte(_ADDED)
_REPLACE = (
    update(messages)
    .where(messages.c.session_id == _SESSION, messages.c.seq == _BATCH.c.seq)
    .values({fact.name: _BATCH.c[fact.name] for fact in _FACTS})
)
_REMOVE = delete(messages).where(
    messages.c.session_id == _SESSION, messages.c.seq == func.any(bindparam("b_seqs", type_=ARRAY(BigInteger)))
)
_FULL = (
    select(messages.c.seq, messages.c.body)
    .where(messages.c.session_id == _SESSION, messages.c.seq > bindparam("b_after_seq", type_=BigInteger))
    .order_by(messages.c.seq)
    .limit(bindparam("b_limit", type_=BigInteger))
)


async def append(
    conn: AsyncConnection,
    session_row_id: int,
    batch: Sequence[NewMessage],
    *,
    expected_seq: int | None = None,
    locked: SessionRow | None = None,
) -> Appended:
    """Stores a batch behind the session's newest message; appends of one session happen one after the other.

    Idempotent by uuid: a message that is there already is a duplicate and changes nothing; only the final form of a
    partial one replaces it. Raises errors.NotFound when the session is gone, errors.Conflict when `expected_seq` is not
    the head and the batch holds anything new, errors.TooLarge for more than MAX_BATCH_MESSAGES.
    `locked` is the session as this transaction found it `to_append`: that saves asking for it again.
    """
    if len(batch) > MAX_BATCH_MESSAGES:
        raise errors.TooLarge(f"At most {MAX_BATCH_MESSAGES} messages fit in one batch.")
    uuids = [plain.text("uuid", message.uuid) for message in batch if message.uuid is not None]
    session = {"b_session_id": session_row_id}
    found = locked or (await conn.execute(_LOCK, session)).one_or_none()
    if found is None:
        raise errors.NotFound("There is no such session.")
    head_seq, boundary_seq = found.head_seq, found.boundary_seq
    known: dict[str, Known] = {}
    if uuids and head_seq:
        rows = await conn.execute(_KNOWN, {**session, "b_uuids": uuids})
        known = {uuid: Known(seq, partial) for uuid, seq, partial in rows}
    covered_seq = 0
    if any(place.partial for place in known.values()):
        covered_seq = (await conn.execute(_COVERED, session)).scalar_one()
    planned = plan(batch, known, covered_seq)
    if expected_seq is not None and expected_seq != head_seq and (planned.added or planned.replaced):
        raise errors.Conflict(f"The session's head_seq is {head_seq}, not {expected_seq}.")
    await _write(conn, session_row_id, planned, head_seq, boundary_seq)
    return planned.outcome(head_seq)


async def _write(conn: AsyncConnection, session_id: int, planned: AppendPlan, head_seq: int, boundary_seq: int) -> None:
    if not planned.added and not planned.replaced:
        return
    session = {"b_session_id": session_id}
    head = {
        "b_head_seq": head_seq + len(planned.added),
        "b_boundary_seq": max(boundary_seq, planned.boundary_seq(head_seq)),
    }
    if planned.removed:
        await conn.execute(_REMOVE, {**session, "b_seqs": planned.removed})
    if planned.replaced:
        await conn.execute(_REPLACE, {**session, **_columns(planned.replaced)})
    if planned.added:
        seqs = range(head_seq + 1, head_seq + 1 + len(planned.added))
        await conn.execute(_ADD, {**session, **head, **_columns(dict(zip(seqs, planned.added, strict=True)))})
    else:
        await conn.execute(_HEAD, {**session, **head})


def _columns(placed: dict[int, NewMessage]) -> dict[str, list[object]]:
    """The messages by column, as the arrays of the batch."""
    batch = placed.values()
    return {
        "b_seqs": list(placed),
        "b_uuids": [message.uuid for message in batch],
        "b_roles": [message.role for message in batch],
        "b_partials": [message.partial for message in batch],
        "b_starts": [message.starts_live for message in batch],
        "b_sizes": [len(message.body) for message in batch],
        "b_bodies": [bodies.pack(message.body) for message in batch],
    }


async def load_full(
    conn: AsyncConnection, session_id: int, *, after_seq: int = 0, limit: int | None = None
) -> list[StoredMessage]:
    """The stored messages after `after_seq`, oldest first, at most `limit` of them."""
    rows = await conn.execute(
        _FULL, {"b_session_id": session_id, "b_after_seq": min(after_seq, plain.MAX_NUMBER), "b_limit": limit}
    )
    return [StoredMessage(seq, bodies.unpack(body)) for seq, body in rows]
