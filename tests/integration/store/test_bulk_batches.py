"""Batches of bulk runs in the store: before and after a crash, whose answers are whose, and how long they are kept."""

from __future__ import annotations

from decimal import Decimal

import pytest

from compaction.core.bulk import Load
from compaction.errors import Conflict
from compaction.store import bulk_adoptions, bulk_batches, bulk_items
from compaction.store.bulk_batches import BatchRow, ItemAnswer
from compaction.store.jobs import Finish
from tests.integration.store.bulk_stage import Run, running
from tests.integration.store.stage import Stage

pytestmark = pytest.mark.anyio


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


async def intended(stage: Stage) -> tuple[Run, BatchRow]:
    """A run whose worker died when its batch was about to be sent."""
    run = await running(stage, way="message_batches")
    await run.intend()
    return run, await batch_of(run)


async def batch_of(run: Run) -> BatchRow:
    async with run.stage.database.begin() as conn:
        (batch,) = await bulk_batches.unended(conn, run.row)
    return batch


async def adopt(run: Run, name: str) -> BatchRow:
    batch = await batch_of(run)
    async with run.stage.database.begin() as conn:
        assert await bulk_adoptions.adopt(conn, batch.id, name)
    return await batch_of(run)


async def test_a_strangers_batch_is_remembered_by_its_run_alone_and_the_search_goes_on(stage: Stage) -> None:
    run, batch = await intended(stage)
    other, _ = await intended(stage)
    name = f"msgbatch_stranger_{run.item_id}"
    await adopt(run, name)
    async with stage.database.begin() as conn:
        assert await bulk_adoptions.known(conn, other.row, [name]) == {name}
        assert not await bulk_adoptions.hand_over(conn, batch, name, {(run.item_id, 7)})
        await bulk_adoptions.replace(conn, batch)
        assert await bulk_adoptions.known(conn, run.row, [name]) == {name}
        assert await bulk_adoptions.known(conn, other.row, [name]) == set()
    again = await batch_of(run)
    assert (again.state, again.provider_id, again.requests) == ("intended", None, 1)
    assert again.created_at == batch.created_at
    assert (await run.state())["batch_id"] == again.id
    assert (await adopt(other, name)).provider_id == name


@pytest.mark.parametrize("is_swapped", [False, True])
async def test_a_batch_goes_to_the_row_whose_items_it_names(stage: Stage, is_swapped: bool) -> None:
    first, _ = await intended(stage)
    second, _ = await intended(stage)
    name = f"msgbatch_of_{second.item_id}"
    wrong = await adopt(first, name)
    if is_swapped:
        await adopt(second, f"msgbatch_of_{first.item_id}")
    async with stage.database.begin() as conn:
        assert await bulk_adoptions.hand_over(conn, wrong, name, {(second.item_id, 1)})
        assert await bulk_adoptions.known(conn, first.row, [f"msgbatch_of_{first.item_id}"]) == set()
    assert (await batch_of(second)).provider_id == name
    given_back = await batch_of(first)
    assert (given_back.id, given_back.state, given_back.provider_id) == (wrong.id, "intended", None)


async def test_a_batch_that_another_row_took_by_its_size_is_its_senders(stage: Stage) -> None:
    """The search of one run was quicker than the other's answer from the provider."""
    first, _ = await intended(stage)
    second, sending = await intended(stage)
    name = f"msgbatch_of_{second.item_id}"
    await adopt(first, name)
    async with stage.database.begin() as conn:
        assert await bulk_batches.sent(conn, sending.id, name)
    mine, guessed = await batch_of(second), await batch_of(first)
    assert (mine.provider_id, mine.adopted) == (name, False)
    assert (guessed.state, guessed.provider_id) == ("intended", None)


async def test_a_batch_is_adopted_until_an_answer_of_it_is_ours(stage: Stage) -> None:
    run, _ = await intended(stage)
    batch = await adopt(run, f"msgbatch_{run.item_id}")
    assert batch.adopted
    for answers, expected in (([], True), ([ItemAnswer(run.item_id, 1, "batched", b"[1]")], False)):
        async with stage.database.begin() as conn:
            await bulk_batches.take_over(conn, batch.id, answers)
        assert (await batch_of(run)).adopted is expected


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
