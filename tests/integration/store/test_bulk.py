"""Bulk runs in the store: feeding once whoever feeds, what becomes of items, batches before and after a crash."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from compaction.core.bulk import Load
from compaction.errors import Conflict
from compaction.store import bulk_batches, bulk_items, bulk_plans, bulk_runs, jobs
from compaction.store.bulk_batches import ItemAnswer
from compaction.store.bulk_items import NewItem
from compaction.store.bulk_runs import NewRun, RunRow
from compaction.store.jobs import Finish
from compaction.store.sessions import SessionRow
from tests.integration.store.stage import Stage, staged, success

pytestmark = pytest.mark.anyio
USAGE = {"input_tokens": 1_000, "output_tokens": 100, "cost_usd": "0.25"}


@dataclass
class Run:
    """A running run over one new session of the stage."""

    stage: Stage
    row: RunRow
    session: SessionRow
    item_id: int

    async def state(self) -> dict[str, Any]:
        names = (
            "state",
            "reason",
            "error_code",
            "used_tokens",
            "cost_usd",
            "feeds",
            "job_id",
            "content_hash",
            "batch_id",
            "answers",
        )
        sql = f"SELECT {', '.join(names)} FROM bulk_items WHERE id = %s"  # noqa: S608 - our own names
        (row,) = await self.stage.query(sql, self.item_id)
        return dict(zip(names, row, strict=True))

    async def feed(self) -> list[str]:
        async with self.stage.database.begin() as conn:
            return await bulk_items.feed(conn, self.row, [self.item_id])

    async def settle(self) -> int:
        async with self.stage.database.begin() as conn:
            return await bulk_items.settle(conn, self.row, 10)

    async def intend(self) -> int:
        async with self.stage.database.begin() as conn:
            batch_id, _ = await bulk_batches.intend(conn, self.row, [self.item_id])
        return batch_id


def found(session: SessionRow, content_hash: str = "hash") -> NewItem:
    return NewItem(
        session_id=session.id,
        state="found",
        reason=None,
        content_hash=content_hash,
        recipe="recipe",
        covers_through_seq=3,
        tokens=1_000,
        live_usd=Decimal("0.5"),
    )


async def running(stage: Stage, session: SessionRow | None = None, **wanted: Any) -> Run:  # noqa: ANN401 - any field
    session = session or await stage.session(3)
    async with stage.database.begin() as conn:
        row = await bulk_runs.create(conn, NewRun(tenant_id=stage.tenant_id, selection={}, **wanted))
        await bulk_items.add(conn, row, [found(session)])
        await bulk_runs.planned(conn, row, row.way, None)
    ((item_id,),) = await stage.query("SELECT id FROM bulk_items WHERE run_id = %s", row.id)
    return Run(stage, row, session, item_id)


async def test_an_item_is_fed_once_whoever_feeds(stage: Stage) -> None:
    """Twenty leaders at once make one job."""
    run = await running(stage, instructions="Keep names.")
    fed = await asyncio.gather(*(run.feed() for _ in range(20)))
    (job_id,) = [job_id for made in fed for job_id in made]
    job = await stage.job(job_id)
    assert (job.trigger, job.priority, job.instructions) == ("bulk", 30, "Keep names.")
    assert job.metadata == {"bulk_run_id": run.row.id}
    assert str((await run.state())["job_id"]) == job_id


async def test_an_item_whose_batch_has_told_all_is_fed_and_one_that_waits_for_it_is_not(stage: Stage) -> None:
    run = await running(stage, way="message_batches")
    batch_id = await run.intend()
    assert await run.feed() == []
    async with stage.database.begin() as conn:
        await bulk_batches.take_over(conn, batch_id, [ItemAnswer(run.item_id, 1, "batched", b"[1]")])
    assert len(await run.feed()) == 1


async def test_what_is_with_the_provider_waits_a_day_for_a_worker_that_can_ask_for_it(stage: Stage) -> None:
    run = await running(stage, way="message_batches")
    batch_id = await run.intend()
    async with stage.database.begin() as conn:
        assert not await bulk_batches.leave(conn, run.row, 3_600.0)
    assert (await run.state())["batch_id"] == batch_id
    await stage.change("UPDATE bulk_batches SET created_at = now() - interval '2 hours' WHERE id = %s", batch_id)
    async with stage.database.begin() as conn:
        assert await bulk_batches.leave(conn, run.row, 3_600.0)
    assert (await run.state())["state"] == "expired"


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


async def test_answers_that_are_paid_for_outlive_a_lost_worker_and_go_when_the_item_ends(stage: Stage) -> None:
    """The job took over what a batch answered, and died: the next one takes it over again, and nothing is sent."""
    run = await running(stage, way="message_batches")
    batch_id = await run.intend()
    async with stage.database.begin() as conn:
        await bulk_batches.take_over(conn, batch_id, [ItemAnswer(run.item_id, 1, "batched", b"[1]")])
    for expected in ("batched", "batched", "failed"):
        async with stage.database.begin() as conn:
            (item,) = await bulk_batches.candidates(conn, run.row, 10, new=10)
            assert item.answers == b"[1]"
            job_id = await bulk_batches.feed_paid(conn, run.row, item, b"{}")
        assert job_id is not None
        await stage.finish(await stage.claim(job_id), Finish(status="failed", error={"code": "worker_lost"}))
        await run.settle()
        assert (await run.state())["state"] == expected
    assert (await run.state())["answers"] is None


@pytest.mark.parametrize("way_out", ["answer", "refusal", "cancel", "fail"])
async def test_an_item_that_ended_keeps_no_answers(stage: Stage, way_out: str) -> None:
    run = await running(stage, way="message_batches")
    first = await run.intend()
    async with stage.database.begin() as conn:
        await bulk_batches.take_over(conn, first, [ItemAnswer(run.item_id, 1, "batched", b"[1]", missed=True)])
    await stage.change("UPDATE bulk_items SET misses = 2 WHERE id = %s", run.item_id)
    batch_id = await run.intend() if way_out in {"answer", "refusal"} else 0
    async with stage.database.begin() as conn:
        if way_out == "answer":
            await bulk_batches.take_over(conn, batch_id, [ItemAnswer(run.item_id, 2, "cancelled", None)])
        elif way_out == "refusal":
            await bulk_batches.give_up(conn, batch_id, 0.0, code="request_too_large")
        elif way_out == "cancel":
            await bulk_batches.close_unsent(conn, run.row)
        else:
            await bulk_batches.fail(conn, run.row, run.item_id, "no_summary")
    state = await run.state()
    assert state["state"] in {"cancelled", "failed"}
    assert state["answers"] is None


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


async def test_an_item_goes_into_one_batch_whoever_sends(stage: Stage) -> None:
    run = await running(stage, way="message_batches")
    await run.intend()
    with pytest.raises(Conflict):
        await run.intend()
    assert await stage.query("SELECT count(*) FROM bulk_batches WHERE run_id = %s", run.row.id) == [(1,)]


async def test_an_answer_is_taken_over_once(stage: Stage) -> None:
    """After a crash in the middle the results are read again: what was written stays, and is not added again."""
    run = await running(stage, way="message_batches")
    batch_id = await run.intend()
    answer = ItemAnswer(run.item_id, 1, "batched", b"[1]", spent=Load(100, Decimal("0.1")))
    for _ in range(2):
        async with stage.database.begin() as conn:
            await bulk_batches.take_over(conn, batch_id, [answer])
    state = await run.state()
    assert (state["batch_id"], state["used_tokens"], state["cost_usd"]) == (None, 100, Decimal("0.1"))


async def test_an_answer_to_an_earlier_sending_is_not_taken(stage: Stage) -> None:
    run = await running(stage, way="message_batches")
    first = await run.intend()
    async with stage.database.begin() as conn:
        await bulk_batches.give_up(conn, first, 0.0, code=None)
    second = await run.intend()
    async with stage.database.begin() as conn:
        await bulk_batches.take_over(conn, first, [ItemAnswer(run.item_id, 1, "cancelled", None)])
    assert (await run.state())["batch_id"] == second


async def test_a_batch_that_was_given_up_is_nobodys_when_its_id_comes_late(stage: Stage) -> None:
    run = await running(stage, way="message_batches")
    batch_id = await run.intend()
    async with stage.database.begin() as conn:
        await bulk_batches.give_up(conn, batch_id, 0.0, code=None)
        assert await bulk_batches.sent(conn, batch_id, f"msgbatch_{run.item_id}") is False


async def test_a_strangers_batch_is_remembered_and_the_search_goes_on(stage: Stage) -> None:
    run = await running(stage, way="message_batches")
    batch_id = await run.intend()
    name = f"msgbatch_stranger_{run.item_id}"
    async with stage.database.begin() as conn:
        assert await bulk_batches.sent(conn, batch_id, name)
        (batch,) = await bulk_batches.unended(conn, run.row)
        await bulk_batches.replace(conn, batch)
        (again,) = await bulk_batches.unended(conn, run.row)
        assert (again.state, again.provider_id, again.requests) == ("intended", None, 1)
        assert again.created_at == batch.created_at
        assert await bulk_batches.known(conn, [name]) == {name}
    assert (await run.state())["batch_id"] == again.id


async def test_items_of_a_refused_batch_wait_and_are_given_up_after_three_refusals(stage: Stage) -> None:
    run = await running(stage, way="message_batches")
    for expected in ("batched", "batched", "failed"):
        batch_id = await run.intend()
        async with stage.database.begin() as conn:
            await bulk_batches.give_up(conn, batch_id, 0.0, code="request_too_large")
        assert (await run.state())["state"] == expected
    assert (await run.state())["error_code"] == "request_too_large"


async def test_a_name_in_a_batch_is_never_used_again(stage: Stage) -> None:
    """A batch that was given up may be with the provider after all: its answers must not be taken for later ones."""
    run = await running(stage, way="message_batches")
    feeds = []
    for _ in range(2):
        batch_id = await run.intend()
        feeds.append((await run.state())["feeds"])
        async with stage.database.begin() as conn:
            await bulk_batches.give_up(conn, batch_id, 0.0, code=None)
    assert feeds == [1, 2]
    assert (await run.state())["state"] == "batched"


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


async def test_an_item_waits_while_another_run_works_at_the_same_content(stage: Stage) -> None:
    first = await running(stage, way="message_batches")
    second = await running(stage, first.session, way="message_batches")
    await first.intend()
    async with stage.database.begin() as conn:
        assert await bulk_batches.candidates(conn, second.row, 10, new=10) == []
        assert await bulk_items.waiting(conn, second.row, 10) == []


async def test_two_items_that_were_begun_at_once_do_not_wait_for_each_other(stage: Stage) -> None:
    """Two leaders for a moment: what is begun is brought to its end."""
    first = await running(stage, way="message_batches")
    second = await running(stage, first.session, way="message_batches")
    for run in (first, second):
        batch_id = await run.intend()
        async with stage.database.begin() as conn:
            await bulk_batches.take_over(conn, batch_id, [ItemAnswer(run.item_id, 1, "batched", b"[1]")])
    for run in (first, second):
        async with stage.database.begin() as conn:
            assert [one.id for one in await bulk_batches.candidates(conn, run.row, 10, new=10)] == [run.item_id]
