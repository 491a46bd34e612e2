"""Bulk runs in the store: feeding once whoever feeds, what becomes of items, who has a turn."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from compaction.store import bulk_items, bulk_plans, bulk_runs, jobs
from compaction.store.bulk_runs import NewRun
from compaction.store.jobs import Finish
from tests.integration.store.bulk_stage import running
from tests.integration.store.stage import Stage, staged, success

pytestmark = pytest.mark.anyio
USAGE = {"input_tokens": 1_000, "output_tokens": 100, "cost_usd": "0.25"}


async def test_an_item_is_fed_once_whoever_feeds(stage: Stage) -> None:
    """Twenty leaders at once make one job."""
    run = await running(stage, instructions="Keep names.")
    fed = await asyncio.gather(*(run.feed() for _ in range(20)))
    (job_id,) = [job_id for made in fed for job_id in made]
    job = await stage.job(job_id)
    assert (job.trigger, job.priority, job.instructions) == ("bulk", 30, "Keep names.")
    assert job.metadata == {"bulk_run_id": run.row.id}
    assert str((await run.state())["job_id"]) == job_id


async def test_bulk_joins_nobodys_job(stage: Stage) -> None:
    run = await running(stage)
    waiting = (await stage.enqueue(run.session, "manual")).job
    assert await run.feed() == []
    assert (await stage.job(waiting.id)).coalesced == 0
    async with stage.database.begin() as conn:
        assert await bulk_items.waiting(conn, run.row, 10) == []


async def test_a_success_takes_over_what_its_result_says_and_what_all_attempts_cost(stage: Stage) -> None:
    run = await running(stage)
    (job_id,) = await run.feed()
    first = await stage.claim(job_id)
    await stage.finish(first, Finish(status="retrying", usage=USAGE))
    second = await stage.claim(job_id)
    await stage.finish(second, success(second, usage=USAGE))
    assert await run.settle() == 1
    state = await run.state()
    assert (state["state"], state["used_tokens"], state["cost_usd"]) == ("succeeded", 2_200, Decimal("0.5"))
    assert state["content_hash"] == "ab" * 32  # of what was compacted in the end
    assert await run.settle() == 0


async def test_a_job_that_skipped_or_failed_says_why(stage: Stage) -> None:
    for finish, expected in (
        (Finish(status="succeeded", was_compacted=False, reason="circuit_open"), ("skipped", "circuit_open", None)),
        (Finish(status="failed", error={"code": "not_effective"}), ("failed", None, "not_effective")),
        (Finish(status="cancelled"), ("cancelled", None, None)),
    ):
        run = await running(stage)
        (job_id,) = await run.feed()
        await stage.finish(await stage.claim(job_id), finish)
        await run.settle()
        state = await run.state()
        assert (state["state"], state["reason"], state["error_code"]) == expected


async def test_an_item_whose_worker_died_is_fed_three_times(stage: Stage) -> None:
    run = await running(stage)
    for expected in ("found", "found", "failed"):
        (job_id,) = await run.feed()
        await stage.finish(await stage.claim(job_id), Finish(status="failed", error={"code": "worker_lost"}))
        await run.settle()
        assert (await run.state())["state"] == expected


async def test_a_job_that_waited_past_its_deadline_has_expired(stage: Stage) -> None:
    run = await running(stage)
    (job_id,) = await run.feed()
    await stage.change("UPDATE jobs SET deadline_at = now() - interval '1 second' WHERE id = %s", job_id)
    async with stage.database.begin() as conn:
        await jobs.reap_expired(conn, 10)
    await run.settle()
    assert (await run.state())["state"] == "expired"


async def test_a_job_that_is_gone_ends_its_item(stage: Stage) -> None:
    run = await running(stage)
    (job_id,) = await run.feed()
    await stage.change("DELETE FROM jobs WHERE id = %s", job_id)
    await run.settle()
    assert (await run.state())["state"] == "failed"


async def test_a_success_is_known_to_later_runs_while_its_result_is_there(stage: Stage) -> None:
    first = await running(stage)
    (job_id,) = await first.feed()
    claim = await stage.claim(job_id)
    await stage.finish(claim, success(claim))
    await first.settle()
    later = await running(stage, first.session)
    key = {first.session.id: ("recipe", "ab" * 32)}
    async with stage.database.begin() as conn:
        assert (await bulk_plans.earlier(conn, later.row, key))[first.session.id].state == "succeeded"
        assert await bulk_plans.earlier(conn, later.row, {first.session.id: ("other", "ab" * 32)}) == {}
        assert await bulk_plans.earlier(conn, first.row, key) == {}
    await stage.change("DELETE FROM results WHERE job_id = %s", job_id)
    async with stage.database.begin() as conn:
        assert await bulk_plans.earlier(conn, later.row, key) == {}


async def test_a_run_is_its_tenants_alone(stage: Stage) -> None:
    run = await running(stage)
    other = await staged(stage.database)
    async with stage.database.begin() as conn:
        for call in (bulk_runs.get, bulk_runs.pause, bulk_runs.resume, bulk_runs.cancel):
            assert await call(conn, other.tenant_id, run.row.id) is None
        kept = await bulk_runs.get(conn, stage.tenant_id, run.row.id)
    assert kept is not None
    assert kept.state == "running"


async def test_runs_that_wait_for_somebody_hold_up_nobody(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for two runs a turn, three old dry runs and a pause leave it to the run that has work."""
    monkeypatch.setattr(bulk_runs, "MAX_ACTIVE", 2)
    await stage.change("UPDATE bulk_runs SET state = 'ended', ended_at = now() WHERE state <> 'ended'")
    for _ in range(3):
        await running(stage, dry_run=True)
    paused, busy = await running(stage), await running(stage)
    async with stage.database.begin() as conn:
        await bulk_runs.pause(conn, stage.tenant_id, paused.row.id)
        assert await bulk_runs.take_up(conn) == [busy.row.id]
    assert await paused.feed()
    async with stage.database.begin() as conn:
        assert await bulk_runs.take_up(conn) == [paused.row.id, busy.row.id]


async def test_runs_with_work_take_turns(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_runs, "MAX_ACTIVE", 2)
    await stage.change("UPDATE bulk_runs SET state = 'ended', ended_at = now() WHERE state <> 'ended'")
    ids = [(await running(stage)).row.id for _ in range(4)]
    turns = []
    for _ in range(3):
        async with stage.database.begin() as conn:
            turns.append(await bulk_runs.take_up(conn))
    assert turns == [ids[:2], ids[2:], ids[:2]]


async def test_a_plan_pages_through_the_tenants_own_sessions(stage: Stage) -> None:
    mine = [await stage.session(1) for _ in range(3)]
    other = await staged(stage.database)
    await other.session(1)
    async with stage.database.begin() as conn:
        row = await bulk_runs.create(conn, NewRun(tenant_id=stage.tenant_id, selection={}))
        first = await bulk_plans.page(conn, row, 2)
        await bulk_runs.planned_through(conn, row, first[-1].session.id)
        taken = await bulk_runs.take(conn, row.id)
        assert taken is not None
        rest = await bulk_plans.page(conn, taken, 2)
    assert [one.session.id for one in (*first, *rest)] == [session.id for session in mine]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({"model": "claude-opus-5"}, [0]),
        ({"id_prefix": "a_"}, [0]),
        ({"idle_days": 30}, [1]),
        ({"changed_within_days": 30}, [0, 2]),
        ({"breaker": "open"}, [2]),
        ({"breaker": "closed"}, [0, 1]),
        ({"session_ids": ["ab-1", "nobody"]}, [1]),
        ({"prompt_version_below": 1}, [0, 1, 2]),
        ({"last_strategy": "fresh"}, []),
    ],
)
async def test_a_selection_takes_what_all_its_conditions_allow(
    stage: Stage, selection: dict[str, Any], expected: list[int]
) -> None:
    """Three sessions: one of another model, one unchanged for long, one whose breaker is open."""
    made = [await stage.session(1) for _ in range(3)]
    for place, name in enumerate(("a_-0", "ab-1", "ac-2")):
        await stage.change("UPDATE sessions SET name = %s WHERE id = %s", name, made[place].id)
    await stage.change("UPDATE sessions SET model = 'claude-opus-5' WHERE id = %s", made[0].id)
    await stage.change("UPDATE sessions SET updated_at = now() - interval '31 days' WHERE id = %s", made[1].id)
    await stage.change("INSERT INTO breakers (session_id, failures, opened_at) VALUES (%s, 3, now())", made[2].id)
    async with stage.database.begin() as conn:
        row = await bulk_runs.create(conn, NewRun(tenant_id=stage.tenant_id, selection=selection))
        taken = await bulk_plans.page(conn, row, 10)
    assert [one.session.id for one in taken] == [made[place].id for place in expected]
