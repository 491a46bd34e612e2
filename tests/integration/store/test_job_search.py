"""Searching jobs over one tenant's or everybody's: filters, pages, open failures, and the bound on a look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compaction import errors
from compaction.store import breakers, job_causes, job_search
from compaction.store.engine import Database
from compaction.store.job_search import Counted, FoundPage, JobFilter
from compaction.store.jobs import Finish
from compaction.store.reach import Reach
from compaction.store.session_rows import SessionRow
from tests.integration.store.stage import Stage, staged, success

pytestmark = pytest.mark.anyio


@pytest.fixture
def store_url(database_url: str) -> str:
    """Looks over all tenants see every row: each test has a database of its own."""
    return database_url


async def fail(stage: Stage, session: SessionRow, code: str = "no_summary", trigger: str = "manual") -> str:
    claim = await stage.running(session, trigger)  # type: ignore[arg-type]  # a trigger
    error = {"code": code, "message": f"It was {code}.", "retryable": False}
    assert await stage.finish(claim, Finish(status="failed", error=error))
    return claim.job.id


async def succeed(stage: Stage, session: SessionRow) -> str:
    claim = await stage.running(session)
    assert await stage.finish(claim, success(claim))
    return claim.job.id


async def search(
    database: Database,
    reach: Reach,
    cursor: str | None = None,
    limit: int = 50,
    **wanted: Any,  # noqa: ANN401 - fields of a JobFilter
) -> FoundPage:
    async with database.connect() as conn:
        return await job_search.search(conn, reach, JobFilter(**wanted), limit=limit, cursor=cursor)


def ids(found: FoundPage) -> list[str]:
    return [job.id for job in found.jobs]


async def test_each_filter_finds_its_jobs_newest_first(stage: Stage, database: Database) -> None:
    one, two = await stage.session(), await stage.session()
    failed = await fail(stage, one, trigger="auto")
    good = await succeed(stage, two)
    waiting = (await stage.enqueue(one, "reactive")).job.id
    mine = Reach(stage.tenant_id)
    soon = datetime.now(UTC) + timedelta(minutes=1)

    assert ids(await search(database, mine)) == [waiting, good, failed]
    assert ids(await search(database, mine, status="failed")) == [failed]
    assert ids(await search(database, mine, code="no_summary")) == [failed]
    assert ids(await search(database, mine, code="timeout")) == []
    assert ids(await search(database, mine, session=one.name)) == [waiting, failed]
    assert ids(await search(database, mine, trigger="reactive")) == [waiting]
    assert ids(await search(database, mine, strategy="fresh")) == [good]
    assert ids(await search(database, mine, before=soon)) == [waiting, good, failed]
    assert ids(await search(database, mine, after=soon)) == []
    assert ids(await search(database, mine, live_only=True)) == [waiting]
    [job] = (await search(database, mine, strategy="fresh")).jobs
    assert (job.tenant, job.session, job.pre_tokens, job.post_tokens) == (stage.tenant, two.name, 1000, 100)


async def test_a_failure_is_open_until_its_session_has_a_newer_job(stage: Stage, database: Database) -> None:
    one, two = await stage.session(), await stage.session()
    first, second = await fail(stage, one), await fail(stage, one)
    other = await fail(stage, two)
    mine = Reach(stage.tenant_id)
    assert ids(await search(database, mine, open_only=True)) == [other, second]
    await stage.enqueue(one, "manual")
    assert ids(await search(database, mine, open_only=True)) == [other]
    assert first not in ids(await search(database, mine, open_only=True))


async def test_jobs_behind_an_open_breaker_are_found(stage: Stage, database: Database) -> None:
    stuck, fine = await stage.session(), await stage.session()
    blocked = await fail(stage, stuck)
    await fail(stage, fine)
    await stage.change("INSERT INTO breakers (session_id, failures, opened_at) VALUES (%s, 3, now())", stuck.id)
    assert ids(await search(database, Reach(), blocked_only=True)) == [blocked]
    async with database.connect() as conn:
        await breakers.reset(conn, stuck.id)
    assert ids(await search(database, Reach(), blocked_only=True)) == []


async def test_pages_follow_each_other_without_gaps(stage: Stage, database: Database) -> None:
    session = await stage.session()
    made = [await fail(stage, session) for _ in range(5)]
    found: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        page = await search(database, Reach(stage.tenant_id), cursor, limit=2)
        found += ids(page)
        cursor = page.cursor
    assert found == made[::-1]
    assert cursor is None
    with pytest.raises(errors.InvalidRequest):
        await search(database, Reach(), "made-up")


async def test_a_look_that_touches_too_much_says_how_far_it_came_and_goes_on(
    stage: Stage, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a bound of three rows: the rare job behind five others is found by the second look."""
    monkeypatch.setattr(job_search, "SCAN", 3)
    for cached in (job_search._page, job_search._extent, job_search._count):
        cached.cache_clear()
    session = await stage.session()
    rare = await fail(stage, session, trigger="manual")
    for _ in range(5):
        await fail(stage, session, trigger="auto")
    first = await search(database, Reach(), trigger="manual")
    assert (ids(first), first.looked_back_to is not None, first.cursor is not None) == ([], True, True)
    second = await search(database, Reach(), first.cursor, trigger="manual")
    assert ids(second) == [rare]
    async with database.connect() as conn:
        assert await job_search.count(conn, Reach(), JobFilter(trigger="auto")) == Counted(3, 1, at_least=True)
    for cached in (job_search._page, job_search._extent, job_search._count):
        cached.cache_clear()


async def test_a_tenants_look_stops_at_its_wall(stage: Stage, database: Database) -> None:
    other = await staged(database)
    mine, theirs = await fail(stage, await stage.session()), await fail(other, await other.session())
    assert ids(await search(database, Reach(stage.tenant_id))) == [mine]
    assert ids(await search(database, Reach())) == [theirs, mine]
    async with database.connect() as conn:
        counted = await job_search.count(conn, Reach(other.tenant_id), JobFilter(open_only=True))
    assert counted == Counted(1, 1, at_least=False)


async def test_causes_are_counted_with_what_is_still_open(stage: Stage, database: Database) -> None:
    """Of three sessions that failed for one cause, one was dealt with; another cause has one failure."""
    sessions = [await stage.session() for _ in range(3)]
    for session in sessions:
        await fail(stage, session)
    await stage.enqueue(sessions[0], "manual")
    alone = await fail(stage, await stage.session(), "timeout")
    since = datetime.now(UTC) - timedelta(hours=1)
    async with database.connect() as conn:
        found = await job_causes.causes(conn, Reach(stage.tenant_id), since)
        later = await job_causes.causes(conn, Reach(), datetime.now(UTC) + timedelta(hours=1))
    [first, second] = found.causes
    assert (first.code, first.count, first.open, first.sessions) == ("no_summary", 3, 2, 3)
    assert first.messages == (("It was no_summary.", 3),)
    assert (second.code, second.count, second.open, second.sample_id) == ("timeout", 1, 1, alone)
    assert found.cut_at is None
    assert later.causes == ()
