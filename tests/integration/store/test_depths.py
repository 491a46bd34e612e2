"""Caps on what may wait: refused in time, never counted at each enqueue, and no obstacle for who joins."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import literal_column

from compaction import errors
from compaction.core.backpressure import Caps
from compaction.store import depths, jobs
from compaction.store.jobs import Enqueued
from compaction.store.sessions import SessionRow
from tests.integration.store.stage import Stage, staged

pytestmark = pytest.mark.anyio


@pytest.fixture
def store_url(database_url: str) -> str:
    """These tests count all waiting jobs: each has a database of its own."""
    return database_url


async def put(stage: Stage, caps: Caps, session: SessionRow | None = None) -> Enqueued:
    session = session or await stage.session()
    async with stage.database.begin() as conn:
        return await jobs.enqueue(conn, stage.order(session), caps=caps)


async def refresh(stage: Stage) -> bool:
    """Counts anew, however fresh the last count is."""
    await stage.change("UPDATE queue_depths SET at = at - interval '1 minute'")
    async with stage.database.begin() as conn:
        return await depths.refresh(conn)


async def test_a_tenant_that_has_reached_its_cap_is_refused_and_another_is_not(stage: Stage) -> None:
    caps = Caps(tenant=3)
    for _ in range(3):
        await put(stage, caps)
    with pytest.raises(errors.TooManyRequests) as refused:
        await put(stage, caps)
    assert refused.value.retry_after_seconds >= 1
    assert "3 jobs" in refused.value.message
    assert (await put(await staged(stage.database), caps)).created
    assert await stage.query("SELECT count(*) FROM jobs WHERE tenant_id = %s", stage.tenant_id) == [(3,)]


async def test_when_all_tenants_together_have_reached_their_cap_everybody_is_refused(stage: Stage) -> None:
    caps = Caps(tenant=10, everybody=3)
    other = await staged(stage.database)
    for who in (stage, other, stage):
        await put(who, caps)
    for who in (stage, other):
        with pytest.raises(errors.Unavailable):
            await put(who, caps)


async def test_joining_a_waiting_job_is_never_refused(stage: Stage) -> None:
    caps = Caps(tenant=1, everybody=1)
    session = await stage.session()
    first = await put(stage, caps, session)
    joined = await put(stage, caps, session)
    assert (joined.job.id, joined.created, joined.job.coalesced) == (first.job.id, False, 1)


async def test_a_job_that_was_taken_makes_room(stage: Stage) -> None:
    caps = Caps(tenant=1, everybody=1)
    first = await put(stage, caps)
    await stage.claim(first.job.id)
    assert (await put(stage, caps)).created


@pytest.mark.parametrize("row_from", [1, 500])
async def test_a_count_and_what_came_since_make_the_same_cap(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, row_from: int
) -> None:
    """Four counted, one newer, cap five: the sixth is refused, whether the tenant has a row of its own or not."""
    monkeypatch.setattr(depths, "ROW_FROM", row_from)
    monkeypatch.setattr(depths, "_SETTLED_AGO", literal_column("interval '0'"))
    clear, count = depths._count()
    monkeypatch.setattr(depths, "_CLEAR", clear)
    monkeypatch.setattr(depths, "_COUNT", count)
    caps = Caps(tenant=5, everybody=5)
    for _ in range(4):
        await put(stage, caps)
    assert await refresh(stage)
    await put(stage, caps)
    with pytest.raises(errors.TooManyRequests):
        await put(stage, caps)
    owners = {owner for (owner,) in await stage.query("SELECT tenant_id FROM queue_depths WHERE waiting = 4")}
    assert owners == ({0, stage.tenant_id} if row_from == 1 else {0})


async def test_a_job_that_was_being_written_while_others_were_counted_is_not_forgotten(stage: Stage) -> None:
    caps = Caps(tenant=5, everybody=1)
    session = await stage.session()
    async with stage.database.begin() as conn:
        await jobs.enqueue(conn, stage.order(session), caps=caps)
        assert await refresh(stage)
    with pytest.raises(errors.Unavailable):
        await put(stage, caps)


async def test_a_new_count_forgets_tenants_that_have_few_jobs_by_now(stage: Stage) -> None:
    await stage.change(
        "INSERT INTO queue_depths (tenant_id, waiting, through_id) VALUES (%s, 9000, uuidv7())", stage.tenant_id
    )
    assert await refresh(stage)
    assert await stage.query("SELECT tenant_id, waiting FROM queue_depths") == [(0, 0)]


async def test_a_fresh_count_is_not_taken_again(stage: Stage) -> None:
    assert await refresh(stage)
    async with stage.database.begin() as conn:
        assert not await depths.refresh(conn)


async def test_of_many_counts_at_once_one_is_taken(stage: Stage) -> None:
    async def count() -> bool:
        async with stage.database.begin() as conn:
            return await depths.refresh(conn)

    assert sum(await asyncio.gather(*(count() for _ in range(8)))) == 1


async def test_the_pace_at_which_jobs_are_taken_is_told_by_the_count(stage: Stage) -> None:
    """Sixty claims in the minute between two counts, one a second; half of that counts at once."""
    assert await refresh(stage)
    for _ in range(60):
        await stage.running(await stage.session())
    assert await refresh(stage)
    [(pace,)] = await stage.query("SELECT taken_per_second FROM queue_depths WHERE tenant_id = 0")
    assert 0.35 < pace <= 0.5
