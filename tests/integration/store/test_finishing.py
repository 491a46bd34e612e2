"""Finish: one decision, applied as a whole by the holder of the lease, or not at all."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from compaction.core.breaker import BreakerChange, BreakerState
from compaction.store import breakers, jobs, results, sessions
from compaction.store.jobs import Claim, Finish
from tests.integration.store.stage import Stage, message, success

pytestmark = pytest.mark.anyio

Ended = Literal["succeeded", "failed", "retrying", "cancelled"]

FAILURE = {"code": "overloaded", "message": "The model's API is overloaded.", "retryable": True}


async def rows_of(stage: Stage, claim: Claim) -> dict[str, Any]:
    """Everything that a finish could write, as it is now."""
    session, job = claim.session.id, claim.job.id
    owners = {"jobs": "id", "attempts": "job_id", "results": "job_id", "job_events": "job_id"}
    found = {name: await stage.query(f"SELECT * FROM {name} WHERE {key} = %s", job) for name, key in owners.items()}  # noqa: S608 - constants
    found["breakers"] = await stage.query("SELECT * FROM breakers WHERE session_id = %s", session)
    found["sessions"] = await stage.query("SELECT * FROM sessions WHERE id = %s", session)
    return found


async def breaker(stage: Stage, claim: Claim) -> BreakerState:
    async with stage.database.connect() as conn:
        return await breakers.get(conn, claim.session.id)


async def test_a_success_writes_result_job_attempt_live_view_events_and_breaker_together(stage: Stage) -> None:
    claim = await stage.running(await stage.session(messages=2))
    events = [("tengu_compact", {"pre": 1000}), ("second", {"n": 2}), ("third", {})]
    decision = success(claim, usage={"input_tokens": 900}, events=events, breaker=BreakerChange("success"))
    assert await stage.finish(claim, decision)
    job = await stage.job(claim.job.id)
    assert (job.status, job.was_compacted, job.reason, job.error, job.done) == ("succeeded", True, None, None, True)
    assert job.ended_at is not None
    assert (await stage.reread(claim.session)).live_job_id == job.id
    async with stage.database.connect() as conn:
        result = await results.get(conn, stage.tenant_id, job.id)
        timeline = await jobs.events(conn, job.id)
        [attempt] = await jobs.list_attempts(conn, job.id)
    assert result is not None
    assert result.covers_through_seq == 2
    assert [(event.type, event.data) for event in timeline] == events
    assert (attempt.outcome, attempt.usage, attempt.error) == ("succeeded", {"input_tokens": 900}, None)
    assert attempt.ended_at == job.ended_at
    token = "SELECT lease_token, lease_owner, lease_expires_at FROM jobs WHERE id = %s"
    assert await stage.query(token, job.id) == [(None, None, None)]
    assert await stage.query("SELECT lease_token FROM results WHERE job_id = %s", job.id) == [(claim.token,)]


async def test_a_skip_is_a_success_without_a_result(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    decision = Finish(status="succeeded", was_compacted=False, reason="below_threshold")
    assert await stage.finish(claim, decision)
    job = await stage.job(claim.job.id)
    assert (job.status, job.was_compacted, job.reason) == ("succeeded", False, "below_threshold")
    assert (await stage.reread(claim.session)).live_job_id is None
    async with stage.database.connect() as conn:
        assert await results.get(conn, stage.tenant_id, job.id) is None
        [attempt] = await jobs.list_attempts(conn, job.id)
    assert attempt.outcome == "skipped"


async def test_a_failure_keeps_its_error_on_job_and_attempt(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.finish(claim, Finish(status="failed", error=FAILURE))
    assert (await stage.job(claim.job.id)).error == FAILURE
    async with stage.database.connect() as conn:
        [attempt] = await jobs.list_attempts(conn, claim.job.id)
    assert (attempt.outcome, attempt.error) == ("failed", FAILURE)


async def test_a_retry_waits_for_its_delay_and_shows_why(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.finish(claim, Finish(status="retrying", delay_seconds=90, error=FAILURE))
    job = await stage.job(claim.job.id)
    assert (job.status, job.error, job.ended_at, job.attempt) == ("retrying", FAILURE, None, 1)
    [(wait, dispatched)] = await stage.query(
        "SELECT not_before - now(), dispatched_at FROM jobs WHERE id = %s", claim.job.id
    )
    assert 80 < wait.total_seconds() <= 90
    assert dispatched is None


async def test_a_later_success_clears_the_error_of_an_earlier_attempt(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.finish(claim, Finish(status="retrying", error=FAILURE))
    again = await stage.claim(claim.job.id)
    await stage.finish(again, success(again))
    assert (await stage.job(claim.job.id)).error is None


async def test_a_release_gives_the_attempts_number_back_and_keeps_the_last_error(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.finish(claim, Finish(status="retrying", error=FAILURE))
    again = await stage.claim(claim.job.id)
    assert again.job.attempt == 2
    await stage.finish(again, Finish(status="retrying", counted=False))
    job = await stage.job(claim.job.id)
    assert (job.attempt, job.error) == (1, FAILURE)
    assert (await stage.claim(claim.job.id)).job.attempt == 2
    async with stage.database.connect() as conn:
        outcomes = [attempt.outcome for attempt in await jobs.list_attempts(conn, claim.job.id)]
    assert outcomes == ["retrying", "released", None]


@pytest.mark.parametrize("status", ["succeeded", "failed", "retrying", "cancelled"])
async def test_a_stale_token_writes_nothing(stage: Stage, status: Ended) -> None:
    claim = await stage.running(await stage.session(messages=1))
    await stage.finish(claim, Finish(status="retrying"))
    again = await stage.claim(claim.job.id, "worker-2")
    before = await rows_of(stage, claim)
    late = Finish(
        status=status,
        result=success(claim).result if status == "succeeded" else None,
        error=FAILURE,
        events=[("late", {})],
        breaker=BreakerChange("failure", "no_summary"),
    )
    assert not await stage.finish(claim, late)
    assert await rows_of(stage, claim) == before
    assert await stage.finish(again, success(again))


async def test_an_ended_job_is_not_finished_again(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.finish(claim, Finish(status="failed", error=FAILURE))
    before = await rows_of(stage, claim)
    assert not await stage.finish(claim, success(claim))
    assert await rows_of(stage, claim) == before


async def test_an_unknown_job_is_not_finished(stage: Stage) -> None:
    async with stage.database.begin() as conn:
        assert not await jobs.finish(conn, "not-a-job", 1, Finish(status="failed"))


async def test_of_many_finishes_at_once_one_wins(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    won = await asyncio.gather(*(stage.finish(claim, success(claim, f"summary {n}")) for n in range(20)))
    assert sum(won) == 1
    assert len(await stage.query("SELECT 1 FROM results WHERE job_id = %s", claim.job.id)) == 1


async def test_a_rolled_back_finish_leaves_the_job_running(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    before = await rows_of(stage, claim)

    async def work() -> None:
        async with stage.database.begin() as conn:
            assert await jobs.finish(conn, claim.job.id, claim.token, success(claim))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await work()
    assert await rows_of(stage, claim) == before


async def test_a_retry_of_a_job_that_somebody_wants_cancelled_is_cancelled(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    async with stage.database.begin() as conn:
        await jobs.cancel(conn, stage.tenant_id, claim.job.id)
    await stage.finish(claim, Finish(status="retrying", error=FAILURE))
    job = await stage.job(claim.job.id)
    assert job.status == "cancelled"
    assert job.error is not None
    assert job.error["code"] == "cancelled"
    async with stage.database.connect() as conn:
        [attempt] = await jobs.list_attempts(conn, claim.job.id)
    assert attempt.outcome == "cancelled"


async def test_a_retry_that_meets_a_cancellation_never_gets_stuck(stage: Stage) -> None:
    for _ in range(20):
        claim = await stage.running(await stage.session())

        async def cancel(job_id: str = claim.job.id) -> None:
            async with stage.database.begin() as conn:
                await jobs.cancel(conn, stage.tenant_id, job_id)

        await asyncio.gather(cancel(), stage.finish(claim, Finish(status="retrying")))
        assert (await stage.job(claim.job.id)).status == "cancelled"


async def test_a_finish_that_waits_for_its_session_does_not_hold_its_job(stage: Stage) -> None:
    """Everybody locks the session before the job, or two would wait for each other: a claim does so too."""
    claim = await stage.running(await stage.session())
    async with stage.database.begin() as conn:
        await sessions.append(conn, claim.session.id, [message("holds the session's lock")])
        finishing = asyncio.create_task(stage.finish(claim, success(claim)))
        await asyncio.sleep(0.2)
        assert not finishing.done()
        await conn.exec_driver_sql("SELECT 1 FROM jobs WHERE id = %s FOR UPDATE NOWAIT", (claim.job.id,))
    assert await finishing


async def test_three_failures_in_a_row_open_the_breaker_and_a_success_closes_it(stage: Stage) -> None:
    session = await stage.session()
    claim = await stage.running(session)
    for failures in (1, 2, 3):
        claim = claim if failures == 1 else await stage.running(session)
        await stage.finish(claim, Finish(status="failed", breaker=BreakerChange("failure", f"code {failures}")))
        state = await breaker(stage, claim)
        assert (state.failures, state.last_error_code) == (failures, f"code {failures}")
        assert (state.opened_at is not None) == (failures == 3)
    opened = (await breaker(stage, claim)).opened_at
    claim = await stage.running(session)
    await stage.finish(claim, Finish(status="failed", breaker=BreakerChange("failure", "probe")))
    state = await breaker(stage, claim)
    assert opened is not None
    assert state.opened_at is not None
    assert state.opened_at > opened  # a failed probe starts the cooldown anew
    claim = await stage.running(session)
    await stage.finish(claim, success(claim, breaker=BreakerChange("success")))
    assert await breaker(stage, claim) == BreakerState()


async def test_a_success_of_a_session_that_never_failed_leaves_no_breaker_row(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    await stage.finish(claim, success(claim, breaker=BreakerChange("success")))
    assert await stage.query("SELECT 1 FROM breakers WHERE session_id = %s", claim.session.id) == []


async def test_what_jsonb_cannot_carry_is_mended_and_never_costs_the_commit(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    odd: dict[str, Any] = {"text\0": "a\0b", "half": ["\ud83d"]}
    events = [("mended", odd), ("deep", {"deep": deep})]
    error = {"code": "internal", "message": "nul \0 inside", "retryable": False}
    await stage.finish(claim, Finish(status="failed", error=error, events=events))
    async with stage.database.connect() as conn:
        timeline = await jobs.events(conn, claim.job.id)
    assert timeline[0].data == {"text\ufffd": "a\ufffdb", "half": ["\ufffd"]}
    assert timeline[1].data == {"omitted": True}
    assert (await stage.job(claim.job.id)).error == error | {"message": "nul \ufffd inside"}
