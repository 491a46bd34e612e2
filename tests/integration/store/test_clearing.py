from __future__ import annotations

import pytest

from compaction.core import cleanup
from compaction.store import session_state
from compaction.store.sessions import SessionRow
from tests.integration.store.stage import Stage

pytestmark = pytest.mark.anyio

STORED = (
    ("runtime", "file_state"),
    ("runtime", "file_state/src/app.py"),
    ("runtime", "file_states"),
    ("runtime", "file_state%"),
    ("runtime", "sent_skill_names"),
    ("runtime", "memory_files/CLAUDE.md"),
    ("files", "file_state"),
)


async def filled(stage: Stage) -> SessionRow:
    """A session with these entries."""
    session = await stage.session()
    async with stage.database.begin() as conn:
        for kind, key in STORED:
            await session_state.put(conn, session.id, kind, key, b"1")
    return session


async def left(stage: Stage, session: SessionRow) -> set[tuple[str, str]]:
    """The entries that the session has."""
    async with stage.database.connect() as conn:
        return {(entry.kind, entry.key) for entry in await session_state.load(conn, session.id)}


async def test_entries_go_with_what_lies_below_them_and_nothing_else(stage: Stage) -> None:
    session, other = await filled(stage), await filled(stage)
    async with stage.database.begin() as conn:
        assert await session_state.clear(conn, session.id, [("runtime", "file_state")]) == 2
    assert await left(stage, session) == set(STORED[2:])
    assert await left(stage, other) == set(STORED)


async def test_nothing_is_cleared_when_nothing_is_named(stage: Stage) -> None:
    session = await filled(stage)
    async with stage.database.begin() as conn:
        assert await session_state.clear(conn, session.id, []) == 0
    assert await left(stage, session) == set(STORED)


async def test_the_store_forgets_what_the_core_says_is_forgotten(stage: Stage) -> None:
    session = await filled(stage)
    steps = cleanup.steps_for(None, "fresh")
    async with stage.database.begin() as conn:
        await session_state.clear(conn, session.id, cleanup.entries(steps))
    assert await left(stage, session) == {(kind, key) for kind, key in STORED if not cleanup.forgets(kind, key, steps)}
    assert ("runtime", "sent_skill_names") in await left(stage, session)


async def test_a_key_with_wildcards_stands_for_itself(stage: Stage) -> None:
    session = await filled(stage)
    async with stage.database.begin() as conn:
        assert await session_state.clear(conn, session.id, [("runtime", "file_state%")]) == 1


async def test_as_part_of_a_finish_it_forgets_for_the_sessions_of_the_ended_jobs(stage: Stage) -> None:
    session, other = await filled(stage), await filled(stage)
    from sqlalchemy import BigInteger, bindparam, select  # noqa: PLC0415 - stands in for the finish statement

    done = select(bindparam("b_session_id", type_=BigInteger).label("session_id")).cte("done")
    statement = select(done.c.session_id).add_cte(session_state.clearing(done).cte("cleared"))
    values = session_state.clearing_values([("runtime", "memory_files"), ("files", "file_state")])
    async with stage.database.connect() as conn:
        await conn.execute(statement, {"b_session_id": session.id, **values})
    assert await left(stage, session) == set(STORED[:5])
    assert await left(stage, other) == set(STORED)
