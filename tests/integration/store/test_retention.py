"""What is old goes, in batches; what somebody still stands on stays."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.store import idempotency, retention
from compaction.store.idempotency import Kept
from compaction.store.jobs import Finish
from compaction.store.retention import DAY_SECONDS, FIRST_ID
from compaction.store.sessions import SessionRow
from tests.integration.store.stage import Stage, success

pytestmark = pytest.mark.anyio

MONTH = 30 * DAY_SECONDS
TABLES = ("jobs", "attempts", "job_events", "results")


@pytest.fixture
def store_url(database_url: str) -> str:
    """Retention is everybody's: each test has a database of its own."""
    return database_url


async def ended(stage: Stage, session: SessionRow, *, days: int = 0, compacts: bool = True, text: str = "s") -> str:
    """A job that came and ended so many days ago: its id tells the time as well."""
    made = (await stage.enqueue(session)).job.id
    [(job_id,)] = await stage.query("SELECT uuidv7(make_interval(days => %s))::text", -days)
    await stage.change("UPDATE jobs SET id = %s WHERE id = %s", job_id, made)
    claim = await stage.claim(str(job_id))
    events: list[tuple[str, dict[str, Any]]] = [("said", {})]
    await stage.finish(
        claim, success(claim, text, events=events) if compacts else Finish(status="failed", events=events)
    )
    await stage.change("UPDATE jobs SET ended_at = ended_at - make_interval(days => %s) WHERE id = %s", days, job_id)
    return str(job_id)


async def prune(stage: Stage, limit: int = 100, after_id: str = FIRST_ID) -> retention.Pruned:
    async with stage.database.begin() as conn:
        return await retention.prune_jobs(conn, MONTH, limit, after_id)


async def rows(stage: Stage, table: str, job_id: str) -> int:
    column = "id" if table == "jobs" else "job_id"
    [(count,)] = await stage.query(f"SELECT count(*) FROM {table} WHERE {column} = %s", job_id)  # noqa: S608 - ours
    return int(count)


async def test_an_old_job_goes_with_its_attempts_events_and_result(stage: Stage) -> None:
    session = await stage.session(messages=3)
    old = await ended(stage, session, days=31)
    assert [await rows(stage, table, old) for table in TABLES] == [1] * 4
    await ended(stage, session)
    assert (await prune(stage)).deleted == 1
    assert [await rows(stage, table, old) for table in TABLES] == [0] * 4


async def test_the_result_that_a_live_view_stands_on_stays_whatever_its_age(stage: Stage) -> None:
    session = await stage.session(messages=3)
    old = await ended(stage, session, days=400, text="the only summary")
    assert (await prune(stage)).deleted == 0
    live = await stage.live(session)
    assert live.result_body is not None
    assert [message.content for message in live.result_body.messages][-1] == "the only summary"
    await ended(stage, session, text="a newer one")
    assert (await prune(stage)).deleted == 1
    assert await rows(stage, "results", old) == 0
    live = await stage.live(session)
    assert live.result_body is not None
    assert [message.content for message in live.result_body.messages][-1] == "a newer one"


async def test_what_ended_lately_stays_and_so_does_what_has_not_ended(stage: Stage) -> None:
    """A job may be older than a month and have ended yesterday, or wait still."""
    lately = await ended(stage, await stage.session(), days=40, compacts=False)
    await stage.change("UPDATE jobs SET ended_at = now() - interval '29 days' WHERE id = %s", lately)
    waiting = (await stage.enqueue(await stage.session())).job.id
    [(old,)] = await stage.query("SELECT uuidv7(interval '-40 days')::text")
    await stage.change("UPDATE jobs SET id = %s WHERE id = %s", old, waiting)
    assert (await prune(stage)).deleted == 0
    assert [await rows(stage, "jobs", job_id) for job_id in (lately, str(old))] == [1, 1]


async def test_a_pass_goes_on_behind_its_last_batch_and_ends(stage: Stage) -> None:
    """Five old jobs, of which two must stay; batches of two look at each once."""
    for number in range(5):
        await ended(stage, await stage.session(messages=1), days=40 - number, compacts=number < 2)
    deleted, after_id, batches = 0, FIRST_ID, 0
    while True:
        done = await prune(stage, 2, after_id)
        deleted, batches = deleted + done.deleted, batches + 1
        if done.after_id is None:
            break
        after_id = done.after_id
    assert (deleted, batches) == (3, 3)


async def test_old_idempotency_keys_go_and_newer_ones_stay(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        for key in ("old", "new"):
            await idempotency.keep(conn, stage.tenant_id, key, b"h", Kept(202, b"{}"))
    await stage.change("UPDATE idempotency_keys SET created_at = now() - interval '31 days' WHERE key = 'old'")
    async with stage.database.begin() as conn:
        assert await retention.prune_idempotency_keys(conn, MONTH, 100) == 1
    assert await stage.query("SELECT key FROM idempotency_keys") == [("new",)]
