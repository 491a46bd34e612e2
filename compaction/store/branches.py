"""Branches: which stored messages a conversation has gone back behind. They stay in the full view alone."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, Boolean, Text, bindparam, func, literal_column, null, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction import errors
from compaction.store import plain
from compaction.store.tables import messages, results, sessions

_SESSION = bindparam("b_session_id", type_=BigInteger)
_LOCK = select(sessions.c.id).where(sessions.c.id == _SESSION).with_for_update(key_share=True)
_MARK = (
    update(messages)
    .where(
        messages.c.session_id == _SESSION,
        messages.c.uuid == func.any(bindparam("b_uuids", type_=ARRAY(Text))),
        messages.c.off_branch != bindparam("b_off_branch", type_=Boolean),
    )
    .values(off_branch=bindparam("b_off_branch", type_=Boolean))
    .returning(messages.c.seq)
)
_NEWEST_START = select(func.coalesce(func.max(messages.c.seq), literal_column("0"))).where(
    messages.c.session_id == _SESSION, messages.c.starts_live, ~messages.c.off_branch
)
_SETTLE = (
    update(sessions)
    .where(sessions.c.id == _SESSION)
    .values(boundary_seq=_NEWEST_START.scalar_subquery(), updated_at=func.now())
    .returning(sessions.c.boundary_seq)
)
_DROP_RESULT = (
    update(sessions)
    .where(
        sessions.c.id == _SESSION,
        results.c.job_id == sessions.c.live_job_id,
        results.c.covers_through_seq >= bindparam("b_seq", type_=BigInteger),
    )
    .values(live_job_id=null())
)


async def follow(conn: AsyncConnection, session_row_id: int, *, left: Sequence[str], taken: Sequence[str]) -> int:
    """The live view leaves out the stored messages with the uuids `left` and has those of `taken` again.

    Returns how many messages that changes. Where one of them is part of what the live result replaced, the view begins
    with the stored messages again: the result's summary speaks of another conversation by now. Nothing is deleted.
    Raises errors.NotFound when the session is gone.
    """
    session = {"b_session_id": session_row_id}
    if (await conn.execute(_LOCK, session)).one_or_none() is None:
        raise errors.NotFound("There is no such session.")
    changed: list[int] = []
    for off_branch, uuids in ((True, left), (False, taken)):
        if uuids:
            named = [plain.text("uuid", uuid) for uuid in uuids]
            marked = await conn.execute(_MARK, {**session, "b_uuids": named, "b_off_branch": off_branch})
            changed += marked.scalars()
    if changed:
        boundary_seq = (await conn.execute(_SETTLE, session)).scalar_one()
        if told := [seq for seq in changed if seq >= boundary_seq]:
            await conn.execute(_DROP_RESULT, {**session, "b_seq": min(told)})
    return len(changed)
