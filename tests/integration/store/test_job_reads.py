"""Reading jobs: one tenant's, newest first, page by page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from compaction import errors
from compaction.store import jobs
from compaction.store.jobs import Finish, JobRow
from tests.integration.store.stage import Stage, success

pytestmark = pytest.mark.anyio


async def listed(stage: Stage, **filters: object) -> list[str]:
    """All pages' ids, three at a time."""
    ids: list[str] = []
    cursor: str | None = None
    while True:
        async with stage.database.connect() as conn:
            page, cursor = await jobs.list_jobs(conn, stage.tenant_id, limit=3, cursor=cursor, **filters)  # type: ignore[arg-type]  # a word from a table
        assert len(page) <= 3
        ids += [job.id for job in page]
        if cursor is None:
            return ids


async def test_a_job_is_seen_by_its_tenant_alone(stage: Stage) -> None:
    job_id = (await stage.enqueue(await stage.session())).job.id
    async with stage.database.connect() as conn:
        assert await jobs.get(conn, stage.tenant_id + 1_000_000, job_id) is None
        assert (await jobs.get(conn, stage.tenant_id, job_id.upper())) is not None
        assert await jobs.get(conn, stage.tenant_id, "not-a-job") is None
        assert await jobs.list_jobs(conn, stage.tenant_id + 1_000_000) == ([], None)


async def test_pages_hold_every_job_once_newest_first(stage: Stage) -> None:
    made = [(await stage.enqueue(await stage.session())).job.id for _ in range(7)]
    assert await listed(stage) == made[::-1]


async def test_a_page_that_ends_the_list_has_no_cursor(stage: Stage) -> None:
    for _ in range(3):
        await stage.enqueue(await stage.session())
    async with stage.database.connect() as conn:
        page, cursor = await jobs.list_jobs(conn, stage.tenant_id, limit=3)
    assert (len(page), cursor) == (3, None)


async def test_filters_narrow_the_list(stage: Stage) -> None:
    session = await stage.session()
    failed = await stage.running(session, "manual")
    await stage.finish(failed, Finish(status="failed", error={"code": "refusal", "message": "", "retryable": False}))
    done = await stage.running(session, "auto")
    await stage.finish(done, success(done))
    other = (await stage.enqueue(await stage.session(), "auto")).job.id
    assert await listed(stage, status="failed") == [failed.job.id]
    assert await listed(stage, status="cancelled") == []
    assert await listed(stage, trigger="auto") == [other, done.job.id]
    assert await listed(stage, session_name=session.name) == [done.job.id, failed.job.id]
    assert await listed(stage, session_name="no such session") == []
    assert await listed(stage, error_code="refusal") == [failed.job.id]
    assert await listed(stage, error_code="timeout") == []
    assert await listed(stage, trigger="auto", status="queued") == [other]


@pytest.mark.parametrize("cursor", ["", "x", "!!!!", "AAAA", "é" * 22, "A" * 23])
async def test_a_made_up_cursor_is_an_invalid_request(stage: Stage, cursor: str) -> None:
    async with stage.database.connect() as conn:
        with pytest.raises(errors.InvalidRequest):
            await jobs.list_jobs(conn, stage.tenant_id, cursor=cursor)


async def test_a_filter_that_postgres_cannot_carry_is_an_invalid_request(stage: Stage) -> None:
    async with stage.database.connect() as conn:
        for filters in ({"session_name": "\0"}, {"error_code": "\ud83d"}, {"status": "\0"}, {"trigger": "\0"}):
            with pytest.raises(errors.InvalidRequest):
                await jobs.list_jobs(conn, stage.tenant_id, **filters)  # type: ignore[arg-type]  # a word from a table


async def test_a_timeline_is_read_on_from_the_last_event(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.finish(claim, success(claim, events=[(f"e{number}", {"n": number}) for number in range(5)]))
    async with stage.database.connect() as conn:
        first = await jobs.events(conn, claim.job.id, limit=2)
        rest = await jobs.events(conn, claim.job.id, after_id=first[-1].id)
        assert await jobs.events(conn, claim.job.id, after_id=rest[-1].id) == []
        assert await jobs.events(conn, "not-a-job") == []
        assert await jobs.events(conn, claim.job.id, after_id=10**30) == []
    assert [event.type for event in first + rest] == ["e0", "e1", "e2", "e3", "e4"]
    assert [event.id for event in first + rest] == sorted(event.id for event in first + rest)


async def test_a_jobs_repr_holds_no_instructions(stage: Stage) -> None:
    job: JobRow = (await stage.enqueue(await stage.session(), instructions="private words")).job
    assert "private words" not in repr(job)
    assert "private words" not in repr(stage.order(await stage.session(), instructions="private words"))


async def test_a_time_range_holds_its_beginning_and_not_its_end(stage: Stage) -> None:
    made = [(await stage.enqueue(await stage.session())).job for _ in range(3)]
    first, second, third = (job.created_at for job in made)
    assert await listed(stage, created_after=second) == [made[2].id, made[1].id]
    assert await listed(stage, created_before=third) == [made[1].id, made[0].id]
    assert await listed(stage, created_after=first, created_before=first) == []
    assert await listed(stage, created_after=second, created_before=third) == [made[1].id]


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))])
async def test_any_time_that_can_be_written_makes_a_range(stage: Stage, zone: timezone) -> None:
    job = (await stage.enqueue(await stage.session())).job
    earliest, latest = datetime(1, 1, 2, tzinfo=zone), datetime(9999, 12, 30, tzinfo=zone)
    assert await listed(stage, created_after=earliest, created_before=latest) == [job.id]
    assert await listed(stage, created_before=earliest) == await listed(stage, created_after=latest) == []
