"""Enqueue: one waiting job per session, whatever comes at the same moment, and nothing newer is forgotten."""

from __future__ import annotations

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compaction import errors
from compaction.core.jobs import MAX_ATTEMPTS, Scope, Trigger
from compaction.store import jobs
from tests.integration.store.stage import Stage, message, success

pytestmark = pytest.mark.anyio

RANKS = ("bulk", "auto", "manual", "reactive")  # DESIGN §4, lowest first
FAR = datetime(2100, 1, 1, tzinfo=UTC)


def request(word: str, gap: int) -> dict[str, Any]:
    """Two requests with other words and gaps differ in every parameter."""
    return {
        "scope": Scope("from", word),
        "instructions": word,
        "strategy": "fresh" if gap else None,
        "fallback": "extractive" if gap else None,
        "force": bool(gap),
        "token_gap": gap,
        "metadata": {"by": word},
        "traceparent": word,
    }


async def test_a_request_becomes_the_sessions_waiting_job(stage: Stage) -> None:
    session = await stage.session()
    enqueued = await stage.enqueue(
        session,
        "manual",
        scope=Scope("up_to", "u7"),
        instructions="keep the paths",
        strategy="fresh",
        fallback="extractive",
        force=True,
        token_gap=12,
        metadata={"ticket": 7},
        traceparent="00-aa-bb-01",
    )
    job = enqueued.job
    assert enqueued.created
    assert (job.tenant_id, job.session_id, job.session_name) == (stage.tenant_id, session.id, session.name)
    assert (job.status, job.trigger, job.scope, job.done) == ("queued", "manual", Scope("up_to", "u7"), False)
    assert (job.instructions, job.strategy, job.fallback) == ("keep the paths", "fresh", "extractive")
    assert (job.force, job.token_gap, job.metadata, job.traceparent) == (True, 12, {"ticket": 7}, "00-aa-bb-01")
    assert (job.attempt, job.max_attempts, job.coalesced, job.priority) == (0, MAX_ATTEMPTS, 0, 10)
    assert job.not_before == job.created_at
    assert job.deadline_at == job.created_at + timedelta(hours=24)
    assert job == await stage.job(job.id)


@pytest.mark.parametrize(("trigger", "priority"), [("manual", 10), ("reactive", 10), ("auto", 20), ("bulk", 30)])
async def test_priority_is_told_by_the_trigger(stage: Stage, trigger: Trigger, priority: int) -> None:
    assert (await stage.enqueue(await stage.session(), trigger)).job.priority == priority


async def test_a_job_for_later_has_its_day_from_then_on(stage: Stage) -> None:
    job = (await stage.enqueue(await stage.session(), not_before=FAR)).job
    assert job.not_before == FAR
    assert job.deadline_at == FAR + timedelta(hours=24)


async def test_a_second_request_joins_the_waiting_job(stage: Stage) -> None:
    session = await stage.session()
    first = await stage.enqueue(session)
    second = await stage.enqueue(session)
    assert not second.created
    assert second.job.id == first.job.id
    assert second.job.coalesced == 1
    assert (await stage.enqueue(session)).job.coalesced == 2


@pytest.mark.parametrize(("before", "after"), [*itertools.product(RANKS, repeat=2)])
async def test_the_higher_ranked_triggers_parameters_win_and_of_equals_the_newer(
    stage: Stage, before: Trigger, after: Trigger
) -> None:
    session = await stage.session()
    await stage.enqueue(session, before, **request("old", 1))
    job = (await stage.enqueue(session, after, **request("new", 0))).job
    word, trigger = ("new", after) if RANKS.index(after) >= RANKS.index(before) else ("old", before)
    assert (job.trigger, job.scope, job.instructions, job.metadata) == (
        trigger,
        Scope("from", word),
        word,
        {"by": word},
    )
    assert (job.traceparent, job.force, job.token_gap) == (word, word == "old", 1 if word == "old" else 0)
    assert job.priority == min({"bulk": 30, "auto": 20}.get(one, 10) for one in (before, after))


async def test_joining_moves_the_start_to_now_and_never_to_later(stage: Stage) -> None:
    session = await stage.session()
    await stage.enqueue(session, not_before=FAR)
    later = FAR + timedelta(days=1)
    assert (await stage.enqueue(session, not_before=later)).job.not_before == FAR
    assert (await stage.enqueue(session, not_before=FAR - timedelta(days=1))).job.not_before == FAR - timedelta(days=1)
    job = (await stage.enqueue(session)).job
    assert job.not_before < FAR - timedelta(days=2)
    assert (await stage.enqueue(session, not_before=later)).job.not_before == job.not_before


async def test_a_request_while_a_job_runs_waits_for_its_own_turn(stage: Stage) -> None:
    session = await stage.session(messages=1)
    running = await stage.running(session)
    await stage.append(session, message("newer"))
    waiting = await stage.enqueue(session)
    assert waiting.created
    assert waiting.job.id != running.job.id
    await stage.finish(running, success(running))
    assert (await stage.claim(waiting.job.id)).covers_through_seq == 2


async def test_a_request_while_a_job_retries_waits_beside_it(stage: Stage) -> None:
    session = await stage.session()
    retrying = await stage.retrying(session, delay_seconds=600)
    assert (await stage.enqueue(session)).created
    assert (await stage.job(retrying.id)).not_before == retrying.not_before


@pytest.mark.parametrize("trigger", ["manual", "reactive"])
async def test_a_manual_or_reactive_request_ends_the_pause_of_the_retrying_job(stage: Stage, trigger: Trigger) -> None:
    session = await stage.session()
    retrying = await stage.retrying(session, delay_seconds=600)
    await stage.enqueue(session, trigger)
    pulled = await stage.job(retrying.id)
    assert pulled.not_before < retrying.not_before
    assert await stage.try_claim(retrying.id) is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"instructions": "nul\0"},
        {"scope": Scope("up_to", "half \ud83d")},
        {"metadata": {"k\0": 1}},
        {"metadata": {"k": ["\udc00"]}},
        {"metadata": {"big": "x" * 1_000_001}},
        {"traceparent": "\0"},
        {"fallback": "\0"},
        {"token_gap": 2**63},
        {"not_before": datetime(9999, 12, 31, 23, 59, tzinfo=UTC)},
    ],
)
async def test_a_value_that_postgres_cannot_carry_is_an_invalid_request(stage: Stage, fields: dict[str, Any]) -> None:
    session = await stage.session()
    with pytest.raises(errors.InvalidRequest):
        await stage.enqueue(session, **fields)


async def test_fifty_requests_at_once_make_one_waiting_job(stage: Stage) -> None:
    session = await stage.session()
    enqueued = await asyncio.gather(*(stage.enqueue(session) for _ in range(50)))
    assert len({one.job.id for one in enqueued}) == 1
    assert sum(one.created for one in enqueued) == 1
    assert (await stage.job(enqueued[0].job.id)).coalesced == 49
    assert await stage.query("SELECT count(*) FROM jobs WHERE session_id = %s", session.id) == [(1,)]


async def test_requests_at_once_with_claims_leave_no_request_behind(stage: Stage) -> None:
    """After every request a job of its session starts that sees the messages from before the request."""
    session = await stage.session()
    claims: list[jobs.Claim] = []
    wanted: list[int] = []

    async def produce(number: int) -> None:
        appended = await stage.append(session, message(str(number), uuid=str(number)))
        await stage.enqueue(session)
        wanted.append(appended.head_seq)

    async def work() -> None:
        while True:
            ready = await stage.query("SELECT id FROM jobs WHERE session_id = %s AND status = 'queued'", session.id)
            claim = await stage.try_claim(str(ready[0][0])) if ready else None
            if claim is not None:
                claims.append(claim)
                assert await stage.finish(claim, success(claim))
            elif len(wanted) == 40 and not ready:
                return
            await asyncio.sleep(0)

    await asyncio.gather(*(produce(number) for number in range(40)), *(work() for _ in range(4)))
    assert max(claim.covers_through_seq for claim in claims) >= max(wanted)
    assert len({claim.job.id for claim in claims}) == len(claims)
    live = "SELECT count(*) FROM jobs WHERE session_id = %s AND status <> 'succeeded'"
    assert await stage.query(live, session.id) == [(0,)]


async def test_a_request_that_meets_a_claim_joins_before_it_or_waits_behind_it(stage: Stage) -> None:
    for _ in range(20):
        session = await stage.session()
        first = await stage.enqueue(session)
        claim, second = await asyncio.gather(stage.try_claim(first.job.id), stage.enqueue(session, "manual"))
        assert claim is not None
        if second.created:
            assert (await stage.job(second.job.id)).status == "queued"
        else:  # then the claim has seen what joined
            assert second.job.id == first.job.id
            assert claim.job.trigger == "manual"


async def test_a_request_that_meets_a_cancellation_is_not_cancelled_with_the_old_job(stage: Stage) -> None:
    for _ in range(20):
        session = await stage.session()
        first = await stage.enqueue(session)

        async def cancel(job_id: str = first.job.id) -> None:
            async with stage.database.begin() as conn:
                await jobs.cancel(conn, stage.tenant_id, job_id)

        _, second = await asyncio.gather(cancel(), stage.enqueue(session))
        # Either it joined first and the cancellation took both, or it is a job of its own.
        assert second.created == (second.job.id != first.job.id)
        if second.created:
            assert (await stage.job(second.job.id)).status == "queued"


async def test_a_request_that_joins_gives_the_job_a_day_of_its_own(stage: Stage) -> None:
    """Or else it would share the end of a job that has waited for a day already."""
    session = await stage.session()
    old = (await stage.enqueue(session)).job
    await stage.change("UPDATE jobs SET deadline_at = now() - interval '1 second' WHERE id = %s", old.id)
    joined = (await stage.enqueue(session)).job
    assert joined.id == old.id
    assert joined.deadline_at is not None
    assert joined.deadline_at > old.created_at + timedelta(hours=24)
    assert await stage.try_claim(joined.id) is not None


async def test_a_request_that_joins_a_job_whose_answer_is_there_already_gets_one_of_its_own(stage: Stage) -> None:
    """An item of a batch waits with its summary for a turn; what was said since is in no summary yet."""
    session = await stage.session(messages=4)
    waiting = (await stage.enqueue(session, "bulk")).job
    await stage.change("UPDATE jobs SET paid_summary = 'x', covers_through_seq = 4 WHERE id = %s", waiting.id)
    await stage.append(session, message("m5"))
    joined = await stage.enqueue(session, "manual", instructions="Keep the names.")
    assert (joined.created, joined.job.id) == (False, waiting.id)
    claim = await stage.claim(waiting.id)
    assert (claim.paid_summary, claim.covers_through_seq) == (None, 5)
