"""Claim and due: who gets a job, and which jobs to ring for."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Literal

import pytest

from compaction.core.breaker import BreakerChange, BreakerState
from compaction.core.jobs import MAX_SUSPECTS
from compaction.store import hooks, jobs, session_state, sessions
from compaction.store.jobs import Finish
from tests.integration.store.stage import Stage, message, success, texts

pytestmark = pytest.mark.anyio

Ended = Literal["succeeded", "failed", "cancelled"]

NOBODY = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def store_url(database_url: str) -> str:
    """These tests look at all due jobs: each has a database of its own."""
    return database_url


async def due(stage: Stage, limit: int = 100, redispatch_seconds: float = 30.0) -> list[str]:
    async with stage.database.begin() as conn:
        return await jobs.due(conn, limit, redispatch_seconds)


async def test_a_claim_brings_what_the_first_step_needs(stage: Stage) -> None:
    session = await stage.session(messages=3)
    enqueued = await stage.enqueue(session, "manual", instructions="short")
    claim = await stage.claim(enqueued.job.id, "host:1", lease_seconds=60)
    assert (claim.job.id, claim.job.status, claim.job.attempt) == (enqueued.job.id, "running", 1)
    assert (claim.job.instructions, claim.job.session_name, claim.tenant) == ("short", session.name, stage.tenant)
    assert claim.session == session
    assert (claim.covers_through_seq, claim.paid_summary) == (3, None)
    assert claim.breaker == BreakerState()
    assert claim.job.started_at == claim.claimed_at
    assert 0 <= claim.age_seconds < 60
    [(owner, lease)] = await stage.query(
        "SELECT lease_owner, lease_expires_at - started_at FROM jobs WHERE id = %s", claim.job.id
    )
    assert (owner, lease.total_seconds()) == ("host:1", 60)
    async with stage.database.connect() as conn:
        [attempt] = await jobs.list_attempts(conn, claim.job.id)
    assert (attempt.attempt, attempt.token, attempt.owner) == (1, claim.token, "host:1")
    assert (attempt.outcome, attempt.ended_at) == (None, None)


async def test_a_claim_brings_the_sessions_breaker(stage: Stage) -> None:
    session = await stage.session()
    claim = await stage.running(session)
    await stage.finish(claim, Finish(status="failed", breaker=BreakerChange("failure", "no_summary")))
    assert (await stage.running(session)).breaker == BreakerState(1, None, "no_summary")


async def test_tokens_grow_and_are_never_used_again(stage: Stage) -> None:
    first = await stage.running(await stage.session())
    second = await stage.running(await stage.session())
    assert second.token > first.token


@pytest.mark.parametrize("job_id", [NOBODY, "not-a-job", "", "nul\0"])
async def test_a_job_that_does_not_exist_cannot_be_claimed(stage: Stage, job_id: str) -> None:
    assert await stage.try_claim(job_id) is None


async def test_a_job_is_claimed_once(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    assert await stage.try_claim(claim.job.id) is None


async def test_of_many_claims_at_once_one_wins(stage: Stage) -> None:
    enqueued = await stage.enqueue(await stage.session())
    claims = await asyncio.gather(*(stage.try_claim(enqueued.job.id, f"w{number}") for number in range(50)))
    assert sum(claim is not None for claim in claims) == 1
    assert len(await stage.query("SELECT 1 FROM attempts WHERE job_id = %s", enqueued.job.id)) == 1


@pytest.mark.parametrize("status", ["succeeded", "failed", "cancelled"])
async def test_an_ended_job_is_not_claimed_again(stage: Stage, status: Ended) -> None:
    claim = await stage.running(await stage.session())
    await stage.finish(claim, Finish(status=status))
    assert await stage.try_claim(claim.job.id) is None


async def test_a_job_is_not_claimed_before_its_time(stage: Stage) -> None:
    enqueued = await stage.enqueue(await stage.session(), not_before=datetime(2100, 1, 1, tzinfo=UTC))
    assert await stage.try_claim(enqueued.job.id) is None


async def test_a_job_past_its_deadline_is_not_claimed(stage: Stage) -> None:
    enqueued = await stage.enqueue(await stage.session())
    await stage.change("UPDATE jobs SET deadline_at = now() - interval '1 second' WHERE id = %s", enqueued.job.id)
    assert await stage.try_claim(enqueued.job.id) is None


async def test_age_counts_towards_the_deadline(stage: Stage) -> None:
    enqueued = await stage.enqueue(await stage.session())
    await stage.change("UPDATE jobs SET deadline_at = deadline_at - interval '1 hour' WHERE id = %s", enqueued.job.id)
    assert 3600 <= (await stage.claim(enqueued.job.id)).age_seconds < 3660


async def test_the_waiting_job_is_not_claimed_while_another_of_its_session_is_active(stage: Stage) -> None:
    session = await stage.session()
    running = await stage.running(session)
    waiting = await stage.enqueue(session)
    assert await stage.try_claim(waiting.job.id) is None
    await stage.finish(running, Finish(status="retrying", delay_seconds=600))
    assert await stage.try_claim(waiting.job.id) is None
    await stage.change("UPDATE jobs SET not_before = now() WHERE id = %s", running.job.id)
    again = await stage.claim(running.job.id)
    await stage.finish(again, success(again))
    assert await stage.try_claim(waiting.job.id) is not None


async def test_two_jobs_of_one_session_are_never_active_together(stage: Stage) -> None:
    """Claims, retries and requests at once: the index would refuse it, and no claim fails loudly."""
    session = await stage.session()
    ended = 0

    async def produce() -> None:
        for _ in range(25):
            await stage.enqueue(session)
            await asyncio.sleep(0)

    async def work(owner: str) -> None:
        nonlocal ended
        while ended < 12:
            live = await stage.query(
                "SELECT id FROM jobs WHERE session_id = %s AND status IN ('queued', 'retrying')", session.id
            )
            for (job_id,) in live or [(None,)]:
                claim = None if job_id is None else await stage.try_claim(str(job_id), owner)
                if claim is None:
                    await stage.enqueue(session)
                    continue
                active = await stage.query(
                    "SELECT count(*) FROM jobs WHERE session_id = %s AND status IN ('running', 'retrying')", session.id
                )
                assert active == [(1,)]
                again = claim.job.attempt == 1
                assert await stage.finish(claim, Finish(status="retrying") if again else success(claim))
                ended += not again

    await asyncio.gather(produce(), *(work(f"w{number}") for number in range(6)))


async def test_the_snapshot_is_fixed_by_the_first_claim_and_kept(stage: Stage) -> None:
    session = await stage.session(messages=2)
    claim = await stage.running(session)
    await stage.append(session, message("newer"))
    await stage.finish(claim, Finish(status="retrying"))
    again = await stage.claim(claim.job.id)
    assert (again.covers_through_seq, again.job.attempt) == (2, 2)
    assert again.job.started_at == claim.job.started_at
    assert again.token != claim.token


async def test_a_claim_waits_for_an_append_that_is_under_way_and_has_it_in_its_snapshot(stage: Stage) -> None:
    session = await stage.session()
    await stage.append(session, message("hal", uuid="p", partial=True))
    job_id = (await stage.enqueue(session)).job.id
    async with stage.database.begin() as conn:
        await sessions.append(conn, session.id, [message("half", uuid="p"), message("more", uuid="q")])
        claiming = asyncio.create_task(stage.claim(job_id))
        await asyncio.sleep(0.2)
        assert not claiming.done()
        # It holds nothing meanwhile: everybody locks the session before the job.
        await conn.exec_driver_sql("SELECT 1 FROM jobs WHERE id = %s FOR UPDATE NOWAIT", (job_id,))
    claim = await claiming
    assert claim.covers_through_seq == 2
    assert texts((await stage.live(session, claim.covers_through_seq)).messages) == ["half", "more"]


async def test_due_rings_for_what_is_ready_most_urgent_first(stage: Stage) -> None:
    bulk = await stage.enqueue(await stage.session(), "bulk")
    auto = await stage.enqueue(await stage.session(), "auto")
    later = await stage.enqueue(await stage.session(), "auto")
    manual = await stage.enqueue(await stage.session(), "manual")
    await stage.enqueue(await stage.session(), not_before=datetime(2100, 1, 1, tzinfo=UTC))
    await stage.running(await stage.session())
    assert await due(stage) == [manual.job.id, auto.job.id, later.job.id, bulk.job.id]


async def test_due_takes_no_more_than_its_limit_and_the_rest_next_time(stage: Stage) -> None:
    made = [(await stage.enqueue(await stage.session())).job.id for _ in range(5)]
    assert [await due(stage, limit=2) for _ in range(4)] == [made[:2], made[2:4], made[4:], []]


async def test_due_rings_again_for_a_job_that_nobody_took(stage: Stage) -> None:
    job_id = (await stage.enqueue(await stage.session())).job.id
    assert await due(stage) == [job_id]
    await stage.change("UPDATE jobs SET dispatched_at = now() - interval '29 seconds'")
    assert await due(stage) == []
    await stage.change("UPDATE jobs SET dispatched_at = now() - interval '31 seconds'")
    assert await due(stage) == [job_id]


async def test_due_leaves_a_job_alone_for_a_while_that_its_producer_announces(stage: Stage) -> None:
    session = await stage.session()
    async with stage.database.begin() as conn:
        enqueued = await jobs.enqueue(conn, stage.order(session), announced=True)
    assert await due(stage) == []
    assert await due(stage, redispatch_seconds=0) == [enqueued.job.id]


async def test_due_rings_in_time_for_an_announced_job_that_is_for_later(stage: Stage) -> None:
    session = await stage.session()
    async with stage.database.begin() as conn:
        order = stage.order(session, not_before=datetime(2100, 1, 1, tzinfo=UTC))
        enqueued = await jobs.enqueue(conn, order, announced=True)
    await stage.change("UPDATE jobs SET not_before = now()")
    assert await due(stage) == [enqueued.job.id]


async def test_due_does_not_ring_for_a_job_whose_session_is_busy(stage: Stage) -> None:
    session = await stage.session()
    running = await stage.running(session)
    waiting = await stage.enqueue(session)
    assert await due(stage) == []
    await stage.finish(running, success(running))
    assert await due(stage) == [waiting.job.id]


async def test_due_rings_for_a_retry_when_its_pause_is_over_and_not_for_the_job_behind_it(stage: Stage) -> None:
    session = await stage.session()
    retrying = await stage.retrying(session, delay_seconds=600)
    await stage.enqueue(session)
    assert await due(stage) == []
    await stage.change("UPDATE jobs SET not_before = now() WHERE id = %s", retrying.id)
    assert await due(stage) == [retrying.id]


async def test_two_reconcilers_at_once_ring_once_for_each_job(stage: Stage) -> None:
    """They look at the same jobs; each job is marked by one of them, and what is left comes in the next turn."""
    made = {(await stage.enqueue(await stage.session())).job.id for _ in range(40)}
    rung: list[str] = []
    while len(rung) < len(made):
        together = await asyncio.gather(*(due(stage, limit=15) for _ in range(6)))
        assert any(together)
        rung += [job_id for ids in together for job_id in ids]
    assert sorted(rung) == sorted(made)


async def test_next_waiting_names_the_sessions_waiting_job_if_it_may_start(stage: Stage) -> None:
    session = await stage.session()

    async def following() -> str | None:
        async with stage.database.connect() as conn:
            return await jobs.next_waiting(conn, session.id)

    assert await following() is None
    later = await stage.enqueue(session, not_before=datetime(2100, 1, 1, tzinfo=UTC))
    assert await following() is None
    await stage.enqueue(session)
    assert await following() == later.job.id


async def test_a_finish_tells_whether_another_job_of_the_session_waits(stage: Stage) -> None:
    alone, busy = await stage.running(await stage.session()), await stage.session()
    claim = await stage.running(busy)
    await stage.enqueue(busy)
    async with stage.database.begin() as conn:
        assert await jobs.finish(conn, alone.job.id, alone.token, success(alone)) == jobs.Finished(session_waits=False)
        assert await jobs.finish(conn, claim.job.id, claim.token, success(claim)) == jobs.Finished(session_waits=True)
        assert await jobs.finish(conn, claim.job.id, claim.token, success(claim)) is None


async def test_a_claim_tells_what_need_not_be_asked_for(stage: Stage) -> None:
    """Most sessions have no stored state and most tenants no hooks: the claim says so, and two questions are spared."""
    session = await stage.session()
    claim = await stage.running(session)
    assert (claim.has_state, claim.has_hooks) == (False, False)
    assert sessions.parameters_in(claim.parameters) == {}
    await stage.finish(claim, Finish(status="retrying"))
    async with stage.database.begin() as conn:
        await session_state.put(conn, session.id, "files", "a.py", b"{}")
        await hooks.add(
            conn, stage.tenant_id, event="pre_compact", url="https://hooks.example/", secret="s", timeout_seconds=5
        )
        await sessions.put(conn, stage.tenant_id, session.name, parameters={"system": b'"be brief"'})
    again = await stage.claim(claim.job.id)
    assert (again.has_state, again.has_hooks) == (True, True)
    assert sessions.parameters_in(again.parameters) == {"system": b'"be brief"'}


async def lost(stage: Stage, times: int, owner: str) -> str:
    """A job that has lost so many workers and may start now."""
    job = (await stage.enqueue(await stage.session())).job
    for _ in range(times):
        await stage.expire(await stage.claim(job.id, f"{owner}-{times}-dead"))
        async with stage.database.begin() as conn:
            await jobs.reap_expired(conn, 10)
        await stage.change("UPDATE jobs SET not_before = now() WHERE id = %s", job.id)
    return job.id


async def test_a_job_on_its_last_chance_runs_beside_no_other_that_lost_a_worker(stage: Stage) -> None:
    """Whichever of them kills the worker, only the guilty one can fail for it; fresh jobs and other workers go on."""
    last, once, fresh = await lost(stage, 2, "a"), await lost(stage, 1, "b"), await lost(stage, 0, "c")
    assert await stage.try_claim(once, "here") is not None
    assert await stage.try_claim(last, "here") is None
    assert await stage.try_claim(fresh, "here") is not None
    claim = await stage.claim(last, "elsewhere")
    assert await stage.try_claim(await lost(stage, 1, "d"), "elsewhere") is None
    assert await stage.finish(claim, success(claim))
    assert await stage.try_claim(await lost(stage, 1, "e"), "elsewhere") is not None


async def test_a_worker_takes_few_jobs_at_once_that_lost_one(stage: Stage) -> None:
    suspects = [await lost(stage, 1, f"w{number}") for number in range(MAX_SUSPECTS + 1)]
    claims = [await stage.try_claim(job_id, "here") for job_id in suspects]
    assert [claim is not None for claim in claims] == [True] * MAX_SUSPECTS + [False]
    assert await stage.try_claim(suspects[-1], "elsewhere") is not None
