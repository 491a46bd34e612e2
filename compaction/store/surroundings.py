"""What stands around a result: its session's model, system prompt and tools, and the last message that it covers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import BigInteger, bindparam, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store.results import ResultRow
from compaction.store.sessions import parameters_in
from compaction.store.tables import messages, sessions


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The session as it is now, and the uuid of the last message that the result covers; None where it has none.

    `parameters` are the exact JSON bytes of system, tools and request; what was never sent is missing.
    """

    model: str
    parameters: Mapping[str, bytes] = field(repr=False)
    last_uuid: str | None


_LAST = (  # markers are no messages: the chain of a log goes on behind what was said last
    select(messages.c.uuid)
    .where(
        messages.c.session_id == bindparam("b_session_id", type_=BigInteger),
        messages.c.seq <= bindparam("b_through_seq", type_=BigInteger),
        messages.c.role != literal_column("'system'"),
        ~messages.c.partial,
        ~messages.c.off_branch,
    )
    .order_by(messages.c.seq.desc())
    .limit(literal_column("1"))
)
_AROUND = select(sessions.c.model, sessions.c.parameters, _LAST.scalar_subquery().label("last_uuid")).where(
    sessions.c.id == bindparam("b_session_id", type_=BigInteger)
)


async def around(conn: AsyncConnection, result: ResultRow) -> Surroundings:
    """What stands around `result`."""
    values = {"b_session_id": result.session_id, "b_through_seq": result.covers_through_seq}
    row = (await conn.execute(_AROUND, values)).one()
    return Surroundings(row.model, parameters_in(row.parameters), row.last_uuid)
