"""Cancel and reap: how a job ends without its worker."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from compaction.core.jobs import MAX_CRASHES, Scope
from compaction.store import jobs
from compaction.store.jobs import Finish, JobRow, Reaped
from tests.integration.store.stage import Stage, success

pytestmark = pytest.mark.anyio

NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def store_url(database_url: str) -> str:
    """These tests look at all expired leases: each has a database of its own."""
    return database_url


async def cancel(stage: Stage, job_id: str) -> JobRow | None:
    async with stage.database.begin() as conn:
        return await jobs.cancel(conn, stage.tenant_id, job_id)


async def reap(stage: Stage, limit: int = 100) -> list[Reaped]:
    async with stage.database.begin() as conn:
        return await jobs.reap_expired(conn, limit)


async def timeline(stage: Stage, job_id: str) -> list[tuple[str, dict[str, Any]]]:
    async with stage.database.connect() as conn:
        return [(event.type, event.data) for event in await jobs.events(conn, job_id)]


async def test_a_queued_job_is_cancelled_at_once(stage: Stage) -> None:
    session = await stage.session()
    job_id = (await stage.enqueue(session)).job.id
    job = await cancel(stage, job_id)
    assert job is not None
    assert (job.status, job.done) == ("cancelled", True)
    assert job.error is not None
    assert (job.error["code"], job.error["retryable"]) == ("cancelled", False)
    assert job.ended_at == job.cancel_requested_at
    assert await stage.try_claim(job_id) is None
    assert await timeline(stage, job_id) == [("cancel_requested", {"status": "cancelled"})]
    assert (await stage.enqueue(session)).created


async def test_a_retrying_job_is_cancelled_at_once_and_its_session_is_free(stage: Stage) -> None:
    session = await stage.session()
    retrying = await stage.retrying(session, delay_seconds=600)
    job = await cancel(stage, retrying.id)
    assert job is not None
    assert job.status == "cancelled"
    assert await stage.try_claim((await stage.enqueue(session)).job.id) is not None


async def test_a_running_job_is_marked_and_ends_by_its_worker(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    job = await cancel(stage, claim.job.id)
    assert job is not None
    assert (job.status, job.ended_at) == ("running", None)
    assert job.cancel_requested_at is not None
    assert await stage.finish(claim, Finish(status="cancelled"))
    assert (await stage.job(claim.job.id)).status == "cancelled"


async def test_a_worker_that_was_faster_than_the_cancellation_keeps_its_result(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await cancel(stage, claim.job.id)
    assert await stage.finish(claim, success(claim))
    assert (await stage.job(claim.job.id)).status == "succeeded"


async def test_asking_twice_keeps_the_first_moment(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    first = await cancel(stage, claim.job.id)
    second = await cancel(stage, claim.job.id)
    assert first is not None
    assert second is not None
    assert first.cancel_requested_at == second.cancel_requested_at


async def test_an_ended_job_stays_as_it_is(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.finish(claim, success(claim))
    before = await stage.job(claim.job.id)
    assert await cancel(stage, claim.job.id) == before
    assert await stage.job(claim.job.id) == before


@pytest.mark.parametrize("job_id", [NOBODY, "not-a-job"])
async def test_an_unknown_job_cannot_be_cancelled(stage: Stage, job_id: str) -> None:
    assert await cancel(stage, job_id) is None


async def test_another_tenants_job_cannot_be_cancelled(stage: Stage) -> None:
    job_id = (await stage.enqueue(await stage.session())).job.id
    async with stage.database.begin() as conn:
        assert await jobs.cancel(conn, stage.tenant_id + 1, job_id) is None
    assert (await stage.job(job_id)).status == "queued"


async def test_a_job_whose_lease_has_run_out_runs_again_after_a_pause(stage: Stage) -> None:
    claim = await stage.running(await stage.session(messages=2))
    await stage.expire(claim)
    assert await reap(stage) == [Reaped(claim.job.id, claim.token, crashed_out=False, status="retrying")]
    job = await stage.job(claim.job.id)
    assert (job.status, job.crashes, job.attempt, job.ended_at) == ("retrying", 1, 1, None)
    assert job.error is not None
    assert (job.error["code"], job.error["retryable"]) == ("worker_lost", True)
    [(pause,)] = await stage.query(
        "SELECT extract(epoch FROM not_before - now())::float FROM jobs WHERE id = %s", job.id
    )
    assert 0 < pause <= 2.4  # two seconds and a fifth: core.jobs.backoff_seconds of a first attempt
    async with stage.database.connect() as conn:
        [attempt] = await jobs.list_attempts(conn, job.id)
    assert attempt.outcome == "expired"
    assert attempt.ended_at is not None
    told = {"trigger": "auto", "auto": True, "query_source": None, "attempt": 1, "scope": "full"}
    assert await timeline(stage, job.id) == [
        ("lease_expired", {"status": "retrying"}),
        ("tengu_compact_failed", told | {"code": "worker_lost", "retryable": True}),
    ]
    await stage.change("UPDATE jobs SET not_before = now() WHERE id = %s", job.id)
    assert (await stage.claim(job.id)).covers_through_seq == 2


async def test_a_lease_that_still_runs_is_left_alone(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    assert await reap(stage) == []
    assert await stage.finish(claim, success(claim))


async def test_the_reaped_worker_has_lost_the_job(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.expire(claim)
    await reap(stage)
    assert not await stage.finish(claim, success(claim))
    assert await stage.query("SELECT 1 FROM results") == []


async def test_a_job_that_loses_its_worker_too_often_has_failed(stage: Stage) -> None:
    job_id = (await stage.enqueue(await stage.session())).job.id
    for crash in range(1, MAX_CRASHES + 1):
        await stage.change("UPDATE jobs SET not_before = now()")
        claim = await stage.claim(job_id)
        async with stage.database.begin() as conn:
            await jobs.save_paid_summary(conn, job_id, claim.token, b"paid")
        await stage.expire(claim)
        [reaped] = await reap(stage)
        assert reaped.crashed_out == (crash == MAX_CRASHES)
    job = await stage.job(job_id)
    assert (job.status, job.crashes, job.done) == ("failed", 3, True)
    assert job.error is not None
    assert (job.error["code"], job.error["retryable"]) == ("worker_lost", False)
    assert await stage.query("SELECT paid_summary FROM jobs") == [(None,)]


async def test_a_job_whose_worker_dies_in_its_last_attempt_has_failed(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.change("UPDATE jobs SET max_attempts = 1")
    await stage.expire(claim)
    [reaped] = await reap(stage)
    assert reaped.crashed_out


async def test_a_dead_workers_job_past_its_deadline_has_failed(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.change("UPDATE jobs SET deadline_at = now()")
    await stage.expire(claim)
    [reaped] = await reap(stage)
    assert reaped.status == "failed"


async def test_a_dead_workers_job_that_somebody_wanted_cancelled_is_cancelled(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await cancel(stage, claim.job.id)
    await stage.expire(claim)
    assert [one.status for one in await reap(stage)] == ["cancelled"]
    job = await stage.job(claim.job.id)
    assert job.error is not None
    assert (job.error["code"], job.done) == ("cancelled", True)


async def test_a_waiting_job_past_its_deadline_has_failed(stage: Stage) -> None:
    waiting = (await stage.enqueue(await stage.session())).job.id
    retrying = (await stage.retrying(await stage.session(), delay_seconds=600)).id
    fresh = (await stage.enqueue(await stage.session())).job.id
    await stage.change("UPDATE jobs SET deadline_at = now() WHERE id <> %s", fresh)
    reaped = await reap(stage)
    assert {one.job_id: (one.token, one.crashed_out) for one in reaped} == {
        waiting: (None, True),
        retrying: (None, True),
    }
    job = await stage.job(waiting)
    assert job.error is not None
    assert (job.status, job.error["code"]) == ("failed", "timeout")
    assert (await stage.job(fresh)).status == "queued"


async def test_the_deadline_of_a_job_for_a_part_is_told_as_its_failure(stage: Stage) -> None:
    job_id = (await stage.enqueue(await stage.session(messages=2), "manual", scope=Scope("up_to", "u1"))).job.id
    await stage.change("UPDATE jobs SET deadline_at = now()")
    await reap(stage)
    told = {"trigger": "manual", "auto": False, "query_source": None, "attempt": 0, "scope": "up_to"}
    assert await timeline(stage, job_id) == [
        ("deadline_passed", {"status": "failed"}),
        ("tengu_partial_compact_failed", told | {"code": "timeout", "retryable": False}),
    ]


async def test_the_usage_of_earlier_attempts_comes_with_the_claim(stage: Stage) -> None:
    claim = await stage.running(await stage.session(messages=2))
    assert claim.spent == ()
    await stage.finish(claim, Finish(status="retrying", usage={"input_tokens": 7, "cost_usd": "0.1"}))
    again = await stage.claim(claim.job.id)
    await stage.finish(again, Finish(status="retrying"))
    assert (await stage.claim(claim.job.id)).spent == ({"input_tokens": 7, "cost_usd": "0.1"},)


async def test_a_job_that_failed_before_its_deadline_keeps_its_own_error(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    error = {"code": "overloaded", "message": "The model's API is overloaded.", "retryable": True}
    await stage.finish(claim, Finish(status="retrying", delay_seconds=600, error=error))
    await stage.change("UPDATE jobs SET deadline_at = now()")
    await reap(stage)
    assert (await stage.job(claim.job.id)).error == error


async def test_the_reaper_takes_no_more_than_its_limit(stage: Stage) -> None:
    for _ in range(5):
        await stage.expire(await stage.running(await stage.session()))
    assert [len(await reap(stage, limit=2)) for _ in range(4)] == [2, 2, 1, 0]


async def test_two_reapers_at_once_take_each_job_once(stage: Stage) -> None:
    for _ in range(30):
        await stage.expire(await stage.running(await stage.session()))
    reaped = [one for part in await asyncio.gather(*(reap(stage, limit=12) for _ in range(6))) for one in part]
    assert len(reaped) == len({one.job_id for one in reaped}) == 30
    assert await stage.query("SELECT DISTINCT crashes FROM jobs") == [(1,)]


async def test_of_a_reaper_and_a_late_finish_at_once_one_wins(stage: Stage) -> None:
    for _ in range(25):
        claim = await stage.running(await stage.session())
        await stage.expire(claim)
        won, reaped = await asyncio.gather(stage.finish(claim, success(claim)), reap(stage))
        assert won != any(one.job_id == claim.job.id for one in reaped)
        assert (await stage.job(claim.job.id)).status == ("succeeded" if won else "retrying")
        results = await stage.query("SELECT count(*) FROM results WHERE job_id = %s", claim.job.id)
        assert results == [(1 if won else 0,)]


async def test_of_a_reaper_and_a_late_beat_at_once_one_wins(stage: Stage) -> None:
    for _ in range(25):
        claim = await stage.running(await stage.session())
        await stage.expire(claim)

        async def beat(token: int = claim.token) -> bool:
            async with stage.database.begin() as conn:
                return token in (await jobs.beat(conn, "worker-1", 60, [token])).alive

        alive, reaped = await asyncio.gather(beat(), reap(stage))
        assert alive != any(one.job_id == claim.job.id for one in reaped)
        assert await stage.finish(claim, success(claim)) == alive
