"""Live views: what the model sees of a history now, and what it saw when a result was made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    UUID,
    BigInteger,
    ColumnElement,
    CompoundSelect,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    null,
    select,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store import bodies, plain
from compaction.store.histories import StoredMessage
from compaction.store.results import ResultBody, ResultRow, decode_body
from compaction.store.tables import messages, results, sessions


@dataclass(frozen=True, slots=True)
class LiveView:
    """What the model sees now: a result's messages first if there is one, then the stored ones, oldest first.

    `through_seq` is the newest message that the view knows of. Partial and sidechain messages are still in `messages`.
    """

    result_body: ResultBody | None
    messages: list[StoredMessage]
    through_seq: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """A live view as it was, and through which seq the producer was given it when it took over the result before."""

    view: LiveView
    applied_through_seq: int | None


_SESSION = bindparam("b_session_id", type_=BigInteger)
_ON_BRANCH = ~messages.c.off_branch


def _live_view(begins_with: ColumnElement[Any]) -> CompoundSelect[Any]:
    """One statement: the result of the job `begins_with` (place 0), and the rows that follow it (place 1)."""
    through = bindparam("b_through_seq", type_=BigInteger)
    older = select(func.coalesce(func.max(messages.c.seq), literal_column("0"))).where(
        messages.c.session_id == _SESSION, messages.c.starts_live, _ON_BRANCH, messages.c.seq <= through
    )
    boundary = case((sessions.c.boundary_seq <= through, sessions.c.boundary_seq), else_=older.scalar_subquery())
    start = select(boundary.label("seq"), begins_with.label("job_id")).where(sessions.c.id == _SESSION).cte("start")
    first = (
        select(results.c.covers_through_seq, results.c.body)
        .where(
            results.c.job_id == start.c.job_id,
            results.c.covers_through_seq >= start.c.seq,
            results.c.covers_through_seq <= through,
        )
        .cte("first")
    )
    begin = func.coalesce(
        select(first.c.covers_through_seq + literal_column("1")).scalar_subquery(),
        select(start.c.seq).scalar_subquery(),
    )
    return union_all(
        select(literal_column("0").label("place"), first.c.covers_through_seq.label("seq"), first.c.body),
        select(literal_column("1"), messages.c.seq, messages.c.body).where(
            messages.c.session_id == _SESSION, _ON_BRANCH, messages.c.seq >= begin, messages.c.seq <= through
        ),
    )


_EARLIER = (  # a session's jobs run one after the other, so their leases tell the order of their results
    select(results.c.job_id, results.c.applied_through_seq)
    .where(results.c.session_id == _SESSION, results.c.lease_token < bindparam("b_token", type_=BigInteger))
    .order_by(results.c.lease_token.desc())
    .limit(literal_column("1"))
)
_LIVE = _live_view(sessions.c.live_job_id)
_TAIL = (
    select(messages.c.seq, messages.c.body)
    .where(messages.c.session_id == _SESSION, _ON_BRANCH, messages.c.seq > bindparam("b_after_seq", type_=BigInteger))
    .order_by(messages.c.seq)
)
_ORIGINAL = _live_view(cast(null(), UUID(as_uuid=False)))
_REPLACED = _live_view(_EARLIER.with_only_columns(results.c.job_id).scalar_subquery())


async def load_live(conn: AsyncConnection, session_id: int, *, through_seq: int | None = None) -> LiveView:
    """The live view, as of `through_seq` if given: the newest boundary or result by then, and what follows it."""
    through = plain.MAX_NUMBER if through_seq is None else min(through_seq, plain.MAX_NUMBER)
    rows = await conn.execute(_LIVE, {"b_session_id": session_id, "b_through_seq": through})
    return _decoded(rows, through_seq)


async def load_original(conn: AsyncConnection, session_id: int, *, through_seq: int) -> LiveView:
    """What the producer stored since its own newest boundary, through `through_seq`: as if we had never compacted."""
    through = min(through_seq, plain.MAX_NUMBER)
    rows = await conn.execute(_ORIGINAL, {"b_session_id": session_id, "b_through_seq": through})
    return _decoded(rows, through_seq)


async def load_tail(conn: AsyncConnection, session_id: int, after_seq: int) -> list[StoredMessage]:
    """What was appended after `after_seq` and belongs to the live view, oldest first."""
    rows = await conn.execute(_TAIL, {"b_session_id": session_id, "b_after_seq": after_seq})
    return [StoredMessage(seq, bodies.unpack(body)) for seq, body in rows]


async def load_replaced(conn: AsyncConnection, result: ResultRow) -> Replaced:
    """What `result` stands for: the live view as it was when its job took its snapshot."""
    through = result.covers_through_seq
    values = {"b_session_id": result.session_id, "b_token": result.lease_token}
    view = _decoded(await conn.execute(_REPLACED, values | {"b_through_seq": through}), through)
    earlier = (await conn.execute(_EARLIER, values)).one_or_none()
    return Replaced(view, None if earlier is None else earlier.applied_through_seq)


def _decoded(rows: Iterable[Sequence[Any]], through_seq: int | None) -> LiveView:
    """What the rows of a `_live_view` statement say."""
    result_body, covered_seq = None, 0
    found: list[StoredMessage] = []
    for place, seq, body in rows:
        if place:
            found.append(StoredMessage(seq, bodies.unpack(body)))
        else:
            result_body, covered_seq = decode_body(body), seq
    found.sort(key=lambda message: message.seq)  # in order already: the index gave them so, but SQL promises nothing
    newest = found[-1].seq if found else covered_seq
    return LiveView(result_body, found, newest if through_seq is None else through_seq)
