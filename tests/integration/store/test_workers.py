"""Workers and the leader: who is alive, and who of them leads."""

from __future__ import annotations

import anyio
import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store import leader, workers
from tests.integration.store.stage import Stage

pytestmark = pytest.mark.anyio


@pytest.fixture
def store_url(database_url: str) -> str:
    """These tests look at all workers: each has a database of its own."""
    return database_url


async def test_a_worker_is_known_from_its_first_beat_with_its_newest_state(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        await workers.beat_worker(conn, "host:1", 300, 0, 0.001, draining=False)
    async with stage.database.begin() as conn:
        await workers.beat_worker(conn, "host:1", 300, 12, 0.25, draining=True)
        [known] = await workers.list_workers(conn)
    assert (known.owner, known.slots, known.running, known.loop_lag_seconds) == ("host:1", 300, 12, 0.25)
    assert known.draining
    assert known.beat_at > known.started_at
    assert known.silent_seconds == 0


async def test_a_worker_that_ends_in_good_order_is_forgotten(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        for owner in ("a", "b"):
            await workers.beat_worker(conn, owner, 1, 0, 0.0, draining=False)
        await workers.forget(conn, "a")
        assert [known.owner for known in await workers.list_workers(conn)] == ["b"]


async def test_a_worker_that_is_silent_is_forgotten(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        for owner in ("dead", "alive"):
            await workers.beat_worker(conn, owner, 1, 0, 0.0, draining=False)
    await stage.change("UPDATE workers SET beat_at = now() - interval '10 minutes' WHERE owner = 'dead'")
    async with stage.database.begin() as conn:
        assert await workers.forget_silent(conn, 300) == 1
        assert [known.owner for known in await workers.list_workers(conn)] == ["alive"]


async def test_a_loop_that_hangs_for_days_is_a_number_that_fits(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        await workers.beat_worker(conn, "stuck", 1, 0, 1e9, draining=False)


async def _lead_at_last(conn: AsyncConnection) -> None:
    """Returns once this connection leads; the server needs a moment to notice that another one is gone."""
    while not await leader.try_lead(conn, 60):  # noqa: ASYNC110 - Postgres sets no event of ours
        await anyio.sleep(0.02)


async def test_one_of_two_leads_until_it_resigns(stage: Stage) -> None:
    async with stage.database.connect() as one, stage.database.connect() as other:
        assert [await leader.try_lead(one, 60), await leader.try_lead(other, 60)] == [True, False]
        assert [await leader.try_lead(one, 60), await leader.try_lead(other, 60)] == [True, False]
        await leader.resign(one)  # asked twice, and one resignation is enough
        assert [await leader.try_lead(other, 60), await leader.try_lead(one, 60)] == [True, False]
        await leader.resign(other)


async def test_the_lead_falls_with_its_connection(stage: Stage) -> None:
    async with stage.database.dedicated() as one, stage.database.connect() as other:
        await one.execute(f"SELECT pg_advisory_lock({leader.LOCK_SPACE}, {leader.LEADER_LOCK})")
        assert not await leader.try_lead(other, 60)
        await one.close()
        await _lead_at_last(other)
        await leader.resign(other)


async def test_a_leader_that_falls_silent_loses_the_lead(stage: Stage) -> None:
    """A frozen process keeps its connection open; Postgres ends it after the silence that the leader allowed itself."""
    async with stage.database.dedicated() as frozen, stage.database.connect() as other:
        await frozen.execute(f"SELECT pg_advisory_lock({leader.LOCK_SPACE}, {leader.LEADER_LOCK})")
        await frozen.execute("SET idle_session_timeout = 50")  # what try_lead sets for a silence of 0.05 seconds
        await _lead_at_last(other)
        await leader.resign(other)


async def test_the_silence_is_set_with_the_lead_and_lifted_with_it(stage: Stage) -> None:
    async with stage.database.connect() as one:
        await leader.try_lead(one, 7.5)
        shown = (await one.exec_driver_sql("SHOW idle_session_timeout")).scalar_one()
        assert shown == "7500ms"
        await leader.resign(one)
        assert (await one.exec_driver_sql("SHOW idle_session_timeout")).scalar_one() == "0"


async def test_stepping_down_frees_the_lead_even_when_the_connection_is_broken(stage: Stage) -> None:
    """The connection is thrown away with its lock instead of going back to the pool."""
    async with stage.database.connect() as other:
        async with stage.database.connect() as one:
            assert await leader.try_lead(one, 60)
            raw = (await one.get_raw_connection()).driver_connection
            assert raw is not None
            await raw.close()
            await leader.step_down(one)
        await _lead_at_last(other)
        await leader.resign(other)
