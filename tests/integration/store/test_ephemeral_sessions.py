"""Sessions of inline jobs: nobody's by name, and gone with their jobs, whatever happens at that moment."""

from __future__ import annotations

import asyncio

import pytest

from compaction import errors
from compaction.core.webhooks import EVENTS
from compaction.store import jobs, retention, sessions, webhooks
from compaction.store.jobs import Finish
from compaction.store.retention import DAY_SECONDS
from compaction.store.sessions import SessionRow
from tests.integration.store.stage import Stage, message, success

pytestmark = pytest.mark.anyio

MONTH = 30 * DAY_SECONDS
LOCK_LOOKS = 200  # of 20 ms: until a statement is seen to wait for a lock


@pytest.fixture
def store_url(database_url: str) -> str:
    """Retention is everybody's: each test has a database of its own."""
    return database_url


async def ephemeral(stage: Stage, messages: int = 2) -> SessionRow:
    async with stage.database.begin() as conn:
        made = await sessions.create_ephemeral(conn, stage.tenant_id, model="claude-sonnet-5")
        await sessions.append(conn, made.id, [message(f"m{place}") for place in range(messages)], locked=made)
    return made


async def ended(stage: Stage, session: SessionRow, *, days: int) -> str:
    claim = await stage.running(session, "manual")
    assert await stage.finish(claim, success(claim, events=[("said", {})]))
    await stage.change("UPDATE jobs SET ended_at = now() - make_interval(days => %s) WHERE id = %s", days, claim.job.id)
    return claim.job.id


async def age(stage: Stage, session: SessionRow, *, days: int) -> None:
    await stage.change(
        "UPDATE sessions SET created_at = now() - make_interval(days => %s) WHERE id = %s", days, session.id
    )


async def sweep(stage: Stage, limit: int = 100) -> int:
    async with stage.database.begin() as conn:
        return await retention.prune_ephemeral_sessions(conn, MONTH, limit)


async def left(stage: Stage, session: SessionRow) -> list[int]:
    """Rows of sessions, messages, jobs and results."""
    counts = []
    for table, column in (
        ("sessions", "id"),
        ("messages", "session_id"),
        ("jobs", "session_id"),
        ("results", "session_id"),
    ):
        [(count,)] = await stage.query(f"SELECT count(*) FROM {table} WHERE {column} = %s", session.id)  # noqa: S608 - ours
        counts.append(int(count))
    return counts


async def test_it_has_a_name_that_no_producer_can_choose(stage: Stage) -> None:
    first, second = await ephemeral(stage), await ephemeral(stage)
    assert first.name.startswith("inline/")
    assert first.name != second.name
    assert first.is_ephemeral
    job = (await stage.enqueue(first)).job
    assert job.session_name is None
    assert (await stage.job(job.id)).session_name is None


async def test_its_news_name_no_session(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        secret = "whsec_" + "A" * 43 + "="
        await webhooks.add(conn, stage.tenant_id, url="https://x.example.com/", events=EVENTS, secret=secret)
    job_id = await ended(stage, await ephemeral(stage), days=0)
    [(payload,)] = await stage.query("SELECT payload FROM webhook_deliveries WHERE job_id = %s", job_id)
    assert payload["type"] == "compaction.succeeded"
    assert (payload["data"]["job_id"], payload["data"]["session_id"]) == (job_id, None)


async def test_its_live_view_never_begins_with_a_result(stage: Stage) -> None:
    session = await ephemeral(stage)
    await ended(stage, session, days=0)
    live = await stage.live(session)
    assert live.result_body is None
    assert len(live.messages) == 2
    assert await stage.query("SELECT live_job_id FROM sessions WHERE id = %s", session.id) == [(None,)]


async def test_it_goes_with_its_jobs_and_named_sessions_stay(stage: Stage) -> None:
    old, named = await ephemeral(stage), await stage.session(messages=2)
    for session in (old, named):
        await ended(stage, session, days=31)
        await age(stage, session, days=31)
    assert await left(stage, old) == [1, 2, 1, 1]
    assert await sweep(stage) == 1
    assert await left(stage, old) == [0, 0, 0, 0]
    assert await left(stage, named) == [1, 2, 1, 1]


@pytest.mark.parametrize("newer", ["waiting", "ended"])
async def test_a_newer_job_keeps_it(stage: Stage, newer: str) -> None:
    session = await ephemeral(stage)
    await ended(stage, session, days=40)
    await age(stage, session, days=40)
    if newer == "waiting":
        await stage.enqueue(session, "manual")
    else:
        await ended(stage, session, days=29)
    assert await sweep(stage) == 0
    assert await left(stage, session) == [1, 2, 2, 1 if newer == "waiting" else 2]


async def test_one_whose_jobs_were_pruned_already_goes_too(stage: Stage) -> None:
    session = await ephemeral(stage)
    job_id = await ended(stage, session, days=40)
    await age(stage, session, days=40)
    await stage.change("DELETE FROM jobs WHERE id = %s", job_id)
    assert await sweep(stage) == 1
    assert await left(stage, session) == [0, 0, 0, 0]


async def test_a_job_that_failed_leaves_nothing_either(stage: Stage) -> None:
    session = await ephemeral(stage)
    claim = await stage.running(session)
    assert await stage.finish(claim, Finish(status="failed"))
    await stage.change("UPDATE jobs SET ended_at = now() - interval '31 days' WHERE id = %s", claim.job.id)
    await age(stage, session, days=31)
    assert await sweep(stage) == 1


async def test_a_sweep_takes_so_many_and_the_next_one_the_rest(stage: Stage) -> None:
    for _ in range(3):
        session = await ephemeral(stage)
        await ended(stage, session, days=31)
        await age(stage, session, days=31)
    assert [await sweep(stage, 2), await sweep(stage, 2), await sweep(stage, 2)] == [2, 1, 0]


async def test_a_retry_that_is_being_written_keeps_the_session(stage: Stage) -> None:
    """Its enqueue holds the session's key: the sweep passes over it, now and when it is committed."""
    session = await ephemeral(stage)
    await ended(stage, session, days=40)
    await age(stage, session, days=40)
    async with stage.database.begin() as conn:
        await jobs.enqueue(conn, stage.order(session, "manual"))
        assert await sweep(stage) == 0
    assert await sweep(stage) == 0
    assert await left(stage, session) == [1, 2, 2, 1]


async def test_a_retry_that_comes_while_it_is_swept_finds_nothing(stage: Stage) -> None:
    """It waits for the sweep's lock, and then there is no session to refer to."""
    session = await ephemeral(stage)
    await ended(stage, session, days=40)
    await age(stage, session, days=40)
    async with stage.database.begin() as conn:
        assert await retention.prune_ephemeral_sessions(conn, MONTH, 10) == 1
        retry = asyncio.create_task(stage.enqueue(session, "manual"))
        await waits_for_a_lock(stage)
        assert not retry.done()
    with pytest.raises(errors.NotFound):
        await retry
    assert await left(stage, session) == [0, 0, 0, 0]


async def waits_for_a_lock(stage: Stage) -> None:
    for _ in range(LOCK_LOOKS):
        [(waiting,)] = await stage.query(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        if waiting:
            return
        await asyncio.sleep(0.02)
    pytest.fail("nobody waits for the sweep")
