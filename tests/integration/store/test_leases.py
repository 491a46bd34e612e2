"""Leases: beats keep them, and nobody writes with a token that is not the job's."""

from __future__ import annotations

import pytest

from compaction import errors
from compaction.store import jobs
from compaction.store.jobs import Beat, Finish
from tests.integration.store.stage import Stage

pytestmark = pytest.mark.anyio


async def beat(stage: Stage, tokens: list[int], owner: str = "worker-1", lease_seconds: float = 60.0) -> Beat:
    async with stage.database.begin() as conn:
        return await jobs.beat(conn, owner, lease_seconds, tokens)


async def test_a_beat_renews_all_leases_of_its_owner(stage: Stage) -> None:
    claims = [await stage.running(await stage.session()) for _ in range(3)]
    for claim in claims:
        await stage.expire(claim)
    tokens = [claim.token for claim in claims]
    assert await beat(stage, tokens) == Beat(frozenset(tokens), frozenset())
    left = "SELECT lease_expires_at > now() + interval '50 seconds' FROM jobs WHERE lease_token = ANY(%s)"
    assert await stage.query(left, tokens) == [(True,)] * 3


async def test_a_beat_learns_which_leases_are_lost(stage: Stage) -> None:
    mine = await stage.running(await stage.session())
    ended = await stage.running(await stage.session())
    await stage.finish(ended, Finish(status="failed"))
    assert (await beat(stage, [mine.token, ended.token, 10**12])).alive == {mine.token}


async def test_a_beat_does_not_renew_another_owners_lease(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    assert (await beat(stage, [claim.token], owner="worker-2")).alive == frozenset()


async def test_a_beat_without_jobs_asks_nobody(stage: Stage) -> None:
    assert await beat(stage, []) == Beat(frozenset(), frozenset())


async def test_a_beat_learns_whom_somebody_wants_cancelled(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    other = await stage.running(await stage.session())
    async with stage.database.begin() as conn:
        await jobs.cancel(conn, stage.tenant_id, claim.job.id)
    assert await beat(stage, [claim.token, other.token]) == Beat(
        frozenset({claim.token, other.token}), frozenset({claim.job.id})
    )
    async with stage.database.connect() as conn:
        assert await jobs.cancel_requested(conn, [claim.token, other.token]) == {claim.token}


async def test_progress_is_shown_by_the_holder_alone(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    async with stage.database.begin() as conn:
        assert await jobs.set_progress(conn, claim.token, {"step": "summary", "percent": 40})
        assert not await jobs.set_progress(conn, 10**12, {"step": "other"})
    assert (await stage.job(claim.job.id)).progress == {"step": "summary", "percent": 40}
    await stage.finish(claim, Finish(status="failed"))
    async with stage.database.begin() as conn:
        assert not await jobs.set_progress(conn, claim.token, {"step": "late"})


async def test_model_calls_are_counted_over_all_attempts_up_to_the_limit(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    async with stage.database.begin() as conn:
        assert [await jobs.count_model_call(conn, claim.job.id, claim.token, 3) for _ in range(2)] == [True, True]
    await stage.finish(claim, Finish(status="retrying"))
    again = await stage.claim(claim.job.id)
    async with stage.database.begin() as conn:
        assert [await jobs.count_model_call(conn, again.job.id, again.token, 3) for _ in range(3)] == [
            True,
            False,
            False,
        ]
    assert (await stage.job(claim.job.id)).model_calls == 3


async def test_counting_a_call_under_a_lost_lease_raises(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.finish(claim, Finish(status="retrying"))
    again = await stage.claim(claim.job.id)
    async with stage.database.begin() as conn:
        for job_id, token in ((claim.job.id, claim.token), (claim.job.id, 10**12), ("not-a-job", again.token)):
            with pytest.raises(errors.LeaseLost):
                await jobs.count_model_call(conn, job_id, token, 8)


async def test_a_paid_summary_waits_for_the_next_attempt_and_goes_with_the_end(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    async with stage.database.begin() as conn:
        assert await jobs.save_paid_summary(conn, claim.job.id, claim.token, b"\0paid\xff")
    await stage.finish(claim, Finish(status="retrying"))
    again = await stage.claim(claim.job.id)
    assert again.paid_summary == b"\0paid\xff"
    await stage.finish(again, Finish(status="succeeded", was_compacted=False, reason="below_threshold"))
    assert await stage.query("SELECT paid_summary FROM jobs WHERE id = %s", claim.job.id) == [(None,)]


async def test_a_paid_summary_is_not_saved_under_a_lost_lease(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    async with stage.database.begin() as conn:
        assert not await jobs.save_paid_summary(conn, claim.job.id, claim.token + 1, b"x")
        assert not await jobs.save_paid_summary(conn, "not-a-job", claim.token, b"x")
    assert await stage.query("SELECT paid_summary FROM jobs WHERE id = %s", claim.job.id) == [(None,)]
