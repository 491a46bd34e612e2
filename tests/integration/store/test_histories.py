"""Histories: appended once, in order, byte for byte, and never lost between a snapshot and what follows it."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction import errors
from compaction.store import histories, sessions
from compaction.store.sessions import Appended, NewMessage
from tests.integration.store.stage import Stage, message, success, texts

pytestmark = pytest.mark.anyio


async def test_messages_get_seqs_from_one_in_their_order(stage: Stage) -> None:
    session = await stage.session()
    assert await stage.append(session, message("a"), message("b")) == Appended(2, 2, 0, 0)
    assert await stage.append(session, message("c")) == Appended(3, 1, 0, 0)
    async with stage.database.connect() as conn:
        stored = await sessions.load_full(conn, session.id)
    assert [(one.seq, json.loads(one.body)["content"]) for one in stored] == [(1, "a"), (2, "b"), (3, "c")]
    assert (await stage.reread(session)).head_seq == 3


async def test_a_page_of_the_full_history_starts_after_a_seq(stage: Stage) -> None:
    session = await stage.session(messages=5)
    async with stage.database.connect() as conn:
        page = await sessions.load_full(conn, session.id, after_seq=2, limit=2)
        assert await sessions.load_full(conn, session.id, after_seq=10**30) == []
    assert [one.seq for one in page] == [3, 4]


async def test_sending_a_batch_again_changes_nothing(stage: Stage) -> None:
    session = await stage.session()
    batch = [message("a", uuid="1"), message("b", uuid="2")]
    await stage.append(session, *batch)
    assert await stage.append(session, *batch) == Appended(2, 0, 2, 0)
    assert await stage.append(session, *batch, message("c", uuid="3")) == Appended(3, 1, 2, 0)
    assert texts((await stage.live(session)).messages) == ["a", "b", "c"]


async def test_messages_without_uuid_are_always_new(stage: Stage) -> None:
    session = await stage.session()
    await stage.append(session, message("same"))
    assert await stage.append(session, message("same")) == Appended(2, 1, 0, 0)


async def test_the_same_uuid_in_two_sessions_is_two_messages(stage: Stage) -> None:
    for session in (await stage.session(), await stage.session()):
        assert await stage.append(session, message("a", uuid="1")) == Appended(1, 1, 0, 0)


async def test_a_partial_message_is_replaced_in_its_place_by_the_final_one(stage: Stage) -> None:
    session = await stage.session()
    await stage.append(session, message("hal", uuid="1", partial=True), message("next", uuid="2"))
    assert await stage.append(session, message("half", uuid="1", partial=True)) == Appended(2, 0, 0, 1)
    assert await stage.append(session, message("whole", uuid="1")) == Appended(2, 0, 0, 1)
    assert await stage.append(session, message("late", uuid="1", partial=True)) == Appended(2, 0, 1, 0)
    assert texts((await stage.live(session)).messages) == ["whole", "next"]


async def test_a_final_message_behind_a_running_snapshot_goes_to_the_end_so_that_it_is_not_lost(stage: Stage) -> None:
    session = await stage.session()
    await stage.append(session, message("a"), message("hal", uuid="p", partial=True), message("b"))
    claim = await stage.running(session)
    assert claim.covers_through_seq == 3
    assert await stage.append(session, message("whole", uuid="p")) == Appended(4, 0, 0, 1)
    await stage.finish(claim, success(claim))
    view = await stage.live(session)
    assert [one.seq for one in view.messages] == [4]
    assert texts(view.messages) == ["whole"]


async def test_a_final_message_behind_a_committed_result_goes_to_the_end(stage: Stage) -> None:
    session = await stage.session()
    await stage.append(session, message("hal", uuid="p", partial=True))
    claim = await stage.running(session)
    await stage.finish(claim, success(claim))
    await stage.append(session, message("whole", uuid="p"))
    assert texts((await stage.live(session)).messages) == ["whole"]


async def test_a_wrong_expected_seq_is_a_conflict_and_stores_nothing(stage: Stage) -> None:
    session = await stage.session(messages=3)
    with pytest.raises(errors.Conflict, match="head_seq is 3, not 2"):
        await stage.append(session, message("new", uuid="x"), expected_seq=2)
    assert (await stage.reread(session)).head_seq == 3
    assert (await stage.append(session, message("new", uuid="x"), expected_seq=3)).head_seq == 4


async def test_a_batch_that_was_stored_before_its_answer_got_lost_is_no_conflict(stage: Stage) -> None:
    session = await stage.session()
    batch = [message("a", uuid="1"), message("b", uuid="2")]
    await stage.append(session, *batch, expected_seq=0)
    assert await stage.append(session, *batch, expected_seq=0) == Appended(2, 0, 2, 0)


async def test_appending_to_a_session_that_is_gone_is_not_found(stage: Stage) -> None:
    session = await stage.session()
    await stage.change("DELETE FROM sessions WHERE id = %s", session.id)
    with pytest.raises(errors.NotFound):
        await stage.append(session, message("a"))


async def test_too_many_messages_at_once_are_refused(stage: Stage) -> None:
    session = await stage.session()
    with pytest.raises(errors.TooLarge):
        await stage.append(session, *[message("a")] * (histories.MAX_BATCH_MESSAGES + 1))


async def test_a_uuid_that_postgres_cannot_carry_is_an_invalid_request(stage: Stage) -> None:
    session = await stage.session()
    with pytest.raises(errors.InvalidRequest):
        await stage.append(session, message("a", uuid="nul\0"))


async def test_an_empty_batch_is_no_work(stage: Stage) -> None:
    session = await stage.session(messages=2)
    assert await stage.append(session) == Appended(2, 0, 0, 0)


async def test_appends_at_once_are_all_stored_with_seqs_without_gaps(stage: Stage) -> None:
    session = await stage.session()
    batches = [[message(f"{batch}.{place}", uuid=f"{batch}.{place}") for place in range(5)] for batch in range(30)]
    outcomes = await asyncio.gather(*(stage.append(session, *batch) for batch in batches))
    assert sorted(outcome.head_seq for outcome in outcomes) == list(range(5, 151, 5))
    stored = (await stage.live(session)).messages
    assert [one.seq for one in stored] == list(range(1, 151))
    for batch in range(30):  # each batch lies together and in its order
        start = texts(stored).index(f"{batch}.0")
        assert texts(stored)[start : start + 5] == [f"{batch}.{place}" for place in range(5)]


async def test_the_same_batch_sent_many_times_at_once_is_stored_once(stage: Stage) -> None:
    session = await stage.session()
    batch = [message(str(place), uuid=str(place)) for place in range(10)]
    outcomes = await asyncio.gather(*(stage.append(session, *batch) for _ in range(20)))
    assert sum(outcome.appended for outcome in outcomes) == 10
    assert sum(outcome.duplicates for outcome in outcomes) == 190
    assert (await stage.reread(session)).head_seq == 10


async def test_of_two_appends_at_once_with_the_same_expected_seq_one_wins(stage: Stage) -> None:
    session = await stage.session(messages=1)

    async def append(number: int) -> bool:
        try:
            await stage.append(session, message(f"x{number}", uuid=f"x{number}"), expected_seq=1)
        except errors.Conflict:
            return False
        return True

    assert sorted(await asyncio.gather(*map(append, range(10)))) == [False] * 9 + [True]


async def test_every_final_message_is_in_the_snapshot_or_after_it_whatever_happens_at_the_same_moment(
    stage: Stage,
) -> None:
    for _ in range(15):
        session = await stage.session()
        await stage.append(session, message("hal", uuid="p", partial=True), message("b"))
        enqueued = await stage.enqueue(session)
        claim, _ = await asyncio.gather(stage.claim(enqueued.job.id), stage.append(session, message("whole", uuid="p")))
        seen = texts((await stage.live(session, claim.covers_through_seq)).messages)
        await stage.finish(claim, success(claim))
        after = texts((await stage.live(session)).messages)
        assert ("whole" in seen) != ("whole" in after)


JSON_TEXT = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    values=st.lists(
        st.binary(max_size=3000) | JSON_TEXT.map(lambda value: json.dumps(value, ensure_ascii=True).encode()),
        min_size=1,
        max_size=6,
    )
)
async def test_whatever_bytes_a_body_has_it_comes_back_byte_for_byte(stage: Stage, values: list[bytes]) -> None:
    session = await stage.session()
    await stage.append(session, *(NewMessage(value, None, "user") for value in values))
    assert [one.body for one in (await stage.live(session)).messages] == values


@pytest.mark.parametrize(
    "body",
    [
        b'{"role":"user","content":"nul \\u0000 half \\ud83d raw \xf0\x9f\x98\x80"}',
        b'{ "role" :"user",\r\n\t"content": [ {"type":"from_the_future","x":1e400,"x":-0.0} ] , "role":"user"}',
        b'{"role":"user","content":"' + b"long " * 50_000 + b'"}',
        '{"role":"user","content":"\u2028 \ufeff "}'.encode(),
    ],
    ids=["NUL and half a pair", "odd spaces, unknown block, doubled keys", "a quarter of a megabyte", "odd characters"],
)
async def test_odd_bodies_come_back_byte_for_byte_in_both_views(stage: Stage, body: bytes) -> None:
    session = await stage.session()
    await stage.append(session, NewMessage(body, "u", "user"))
    async with stage.database.connect() as conn:
        full = await sessions.load_full(conn, session.id)
    assert [one.body for one in full] == [one.body for one in (await stage.live(session)).messages] == [body]
