"""Breakers: what is stored, who is open, and the operator's reset."""

from __future__ import annotations

import pytest

from compaction import errors
from compaction.core.breaker import BreakerChange, BreakerState
from compaction.store import breakers
from compaction.store.jobs import Finish
from compaction.store.sessions import SessionRow
from tests.integration.store.stage import Stage

pytestmark = pytest.mark.anyio


async def opened(stage: Stage) -> SessionRow:
    """A session whose breaker is open."""
    session = await stage.session()
    for _ in range(3):
        claim = await stage.running(session)
        await stage.finish(claim, Finish(status="failed", breaker=BreakerChange("failure", "no_summary")))
    return session


async def test_a_session_that_never_failed_has_a_closed_breaker(stage: Stage) -> None:
    session = await stage.session()
    async with stage.database.connect() as conn:
        assert await breakers.get(conn, session.id) == BreakerState()


async def test_a_reset_closes_the_breaker(stage: Stage) -> None:
    session = await opened(stage)
    async with stage.database.begin() as conn:
        assert (await breakers.get(conn, session.id)).opened_at is not None
        assert await breakers.reset(conn, session.id) == BreakerState()
        assert await breakers.get(conn, session.id) == BreakerState()


async def test_open_breakers_are_listed_page_by_page_for_their_tenant(stage: Stage) -> None:
    sessions = [await opened(stage) for _ in range(3)]
    await stage.session()
    async with stage.database.connect() as conn:
        first, cursor = await breakers.list_open(conn, stage.tenant_id, limit=2)
        second, end = await breakers.list_open(conn, stage.tenant_id, limit=2, cursor=cursor)
        assert await breakers.list_open(conn, stage.tenant_id + 1_000_000) == ([], None)
    assert [one.session_name for one in first + second] == [session.name for session in sessions]
    assert first[0].breaker.failures == 3
    assert end is None


async def test_a_made_up_cursor_is_an_invalid_request(stage: Stage) -> None:
    async with stage.database.connect() as conn:
        with pytest.raises(errors.InvalidRequest):
            await breakers.list_open(conn, stage.tenant_id, cursor="AAAA")
