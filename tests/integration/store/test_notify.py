"""News of jobs: whoever waits for a job is woken by the commit that changes it."""

from __future__ import annotations

import asyncio

import pytest

from compaction.store import jobs, notify
from compaction.store.jobs import Finish
from compaction.store.notify import JobListener
from tests.integration.store.stage import Stage, success

pytestmark = pytest.mark.anyio

SOON = 20.0  # seconds that a waiter gives up after; a test that works never waits so long


@pytest.fixture
def store_url(database_url: str) -> str:
    """One test ends connections of its database: each has one of its own."""
    return database_url


async def listening(stage: Stage) -> None:
    """Waits until the listener's connection listens."""
    query = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%%'"
    async with asyncio.timeout(SOON):
        while not await stage.query(query):  # noqa: ASYNC110 - it is Postgres that is asked
            await asyncio.sleep(0.01)  # the listener tells nobody; Postgres knows


async def test_a_commit_wakes_who_waits_for_that_job_and_nobody_else(stage: Stage) -> None:
    claim, other = await stage.running(await stage.session()), await stage.running(await stage.session())
    async with JobListener(stage.database) as listener:
        await listening(stage)
        with listener.watch(claim.job.id) as watch, listener.watch(other.job.id) as bystander:
            await watch.wait(0.2)  # the greeting of a new connection
            await bystander.wait(0.2)
            await stage.finish(claim, success(claim))
            assert await watch.wait(SOON)
            assert not await bystander.wait(0.1)


@pytest.mark.parametrize("running", [True, False])
async def test_a_cancellation_wakes_who_waits(stage: Stage, running: bool) -> None:
    job_id = (await stage.enqueue(await stage.session())).job.id
    if running:
        await stage.claim(job_id)
    async with JobListener(stage.database) as listener:
        await listening(stage)
        with listener.watch(job_id) as watch:
            await watch.wait(0.2)
            async with stage.database.begin() as conn:
                await jobs.cancel(conn, stage.tenant_id, job_id)
            assert await watch.wait(SOON)


async def test_the_reaper_wakes_who_waits(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    async with JobListener(stage.database) as listener:
        await listening(stage)
        with listener.watch(claim.job.id) as watch:
            await watch.wait(0.2)
            await stage.expire(claim)
            async with stage.database.begin() as conn:
                await jobs.reap_expired(conn, 10)
            assert await watch.wait(SOON)


async def test_news_between_opening_the_watch_and_waiting_is_not_missed(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    async with JobListener(stage.database) as listener:
        await listening(stage)
        with listener.watch(claim.job.id) as watch:
            await watch.wait(0.2)
            await stage.finish(claim, Finish(status="failed"))
            await asyncio.sleep(0.2)
            assert await watch.wait(SOON)


async def test_a_rolled_back_change_is_no_news(stage: Stage) -> None:
    claim = await stage.running(await stage.session())

    async def work() -> None:
        async with stage.database.begin() as conn:
            await jobs.finish(conn, claim.job.id, claim.token, success(claim))
            raise RuntimeError

    async with JobListener(stage.database) as listener:
        await listening(stage)
        with listener.watch(claim.job.id) as watch:
            await watch.wait(0.2)
            with pytest.raises(RuntimeError):
                await work()
            assert not await watch.wait(0.2)


async def test_two_thousand_wait_over_one_connection(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    async with JobListener(stage.database) as listener:
        await listening(stage)
        waiting = [asyncio.create_task(listener.wait(claim.job.id, SOON)) for _ in range(2000)]
        await asyncio.sleep(0)
        await stage.finish(claim, success(claim))
        assert all(await asyncio.gather(*waiting))
        listeners = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%%'"
        assert await stage.query(listeners) == [(1,)]


async def test_a_lost_connection_wakes_who_waits_and_comes_back(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "RECONNECT_SECONDS", 0.05)
    claim = await stage.running(await stage.session())
    async with JobListener(stage.database) as listener:
        await listening(stage)
        with listener.watch(claim.job.id) as watch:
            await watch.wait(0.2)
            await stage.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND query LIKE 'LISTEN%%'"
            )
            assert await watch.wait(SOON)  # look for yourself: news may be lost
            await listening(stage)
            await watch.wait(0.2)
            await stage.finish(claim, success(claim))
            assert await watch.wait(SOON)


async def test_who_waits_is_woken_when_the_listener_closes(stage: Stage) -> None:
    listener = JobListener(stage.database)
    waiting = asyncio.create_task(listener.wait("any", SOON))
    await asyncio.sleep(0.1)
    await listener.close()
    assert await waiting


async def test_nobody_is_remembered_after_waiting(stage: Stage) -> None:
    async with JobListener(stage.database) as listener:
        await listener.wait("any", 0)
        assert listener._watches == {}
