"""The live view: the newest boundary or result, and what follows it."""

from __future__ import annotations

import pytest

from compaction.store import results, sessions
from compaction.store.sessions import LiveView
from tests.integration.store.stage import Stage, message, success, texts

pytestmark = pytest.mark.anyio


async def test_without_a_boundary_the_live_view_is_the_whole_history(stage: Stage) -> None:
    session = await stage.session(messages=4)
    view = await stage.live(session)
    assert view.result_body is None
    assert texts(view.messages) == ["m1", "m2", "m3", "m4"]
    assert view.through_seq == 4


async def test_an_empty_session_has_an_empty_view(stage: Stage) -> None:
    assert await stage.live(await stage.session()) == LiveView(None, [], 0)


async def test_a_stored_boundary_begins_the_view(stage: Stage) -> None:
    session = await stage.session(messages=2)
    await stage.append(session, message("boundary", role="system", starts_live=True), message("after"))
    assert texts((await stage.live(session)).messages) == ["boundary", "after"]
    assert (await stage.reread(session)).boundary_seq == 3
    await stage.append(session, message("newer boundary", starts_live=True))
    assert texts((await stage.live(session)).messages) == ["newer boundary"]


async def test_a_view_as_of_an_older_seq_begins_with_the_boundary_of_that_time(stage: Stage) -> None:
    session = await stage.session(messages=1)
    for text, starts_live in (("b1", True), ("x", False), ("b2", True), ("y", False)):
        await stage.append(session, message(text, starts_live=starts_live))
    assert texts((await stage.live(session, 1)).messages) == ["m1"]
    assert texts((await stage.live(session, 3)).messages) == ["b1", "x"]
    assert texts((await stage.live(session, 4)).messages) == ["b2"]
    view = await stage.live(session, 99)
    assert (texts(view.messages), view.through_seq) == (["b2", "y"], 99)


async def test_after_a_commit_the_view_is_the_result_and_what_came_since_the_snapshot(stage: Stage) -> None:
    session = await stage.session(messages=3)
    claim = await stage.running(session)
    await stage.append(session, message("while it ran"))
    await stage.finish(claim, success(claim, "the summary"))
    await stage.append(session, message("after it"))
    view = await stage.live(session)
    assert view.result_body is not None
    assert [one.content for one in view.result_body.summary] == ["the summary"]
    assert view.result_body.messages[0].is_boundary
    assert texts(view.messages) == ["while it ran", "after it"]
    assert view.through_seq == 5


async def test_a_view_with_nothing_after_the_result_reaches_through_the_snapshot(stage: Stage) -> None:
    session = await stage.session(messages=3)
    claim = await stage.running(session)
    await stage.finish(claim, success(claim))
    view = await stage.live(session)
    assert (view.messages, view.through_seq) == ([], 3)


async def test_a_boundary_stored_after_the_snapshot_is_newer_than_the_result(stage: Stage) -> None:
    session = await stage.session(messages=3)
    claim = await stage.running(session)
    await stage.append(session, message("their own boundary", starts_live=True))
    await stage.finish(claim, success(claim))
    view = await stage.live(session)
    assert view.result_body is None
    assert texts(view.messages) == ["their own boundary"]


async def test_a_boundary_inside_the_snapshot_is_older_than_the_result(stage: Stage) -> None:
    session = await stage.session(messages=1)
    await stage.append(session, message("boundary", starts_live=True))
    claim = await stage.running(session)
    await stage.finish(claim, success(claim))
    view = await stage.live(session)
    assert view.result_body is not None
    assert view.messages == []


async def test_a_running_job_sees_its_snapshot_even_when_a_boundary_comes_later(stage: Stage) -> None:
    session = await stage.session(messages=3)
    claim = await stage.running(session)
    await stage.append(session, message("boundary", starts_live=True))
    assert texts((await stage.live(session, claim.covers_through_seq)).messages) == ["m1", "m2", "m3"]


async def test_a_second_compaction_replaces_the_first_in_the_view(stage: Stage) -> None:
    session = await stage.session(messages=2)
    for summary in ("first", "second"):
        await stage.append(session, message(f"before {summary}"))
        claim = await stage.running(session)
        await stage.finish(claim, success(claim, summary))
    view = await stage.live(session)
    assert view.result_body is not None
    assert [one.content for one in view.result_body.summary] == ["second"]
    assert view.messages == []


async def test_the_full_history_stays_whole_after_a_compaction(stage: Stage) -> None:
    session = await stage.session(messages=3)
    claim = await stage.running(session)
    await stage.finish(claim, success(claim))
    assert await stage.query("SELECT count(*) FROM messages WHERE session_id = %s", session.id) == [(3,)]


async def test_what_a_result_replaces_stays_readable_when_newer_results_stand_before_it(stage: Stage) -> None:
    """The view of its snapshot: the result before it, and the messages from there to its own end."""
    session = await stage.session(messages=2)
    first = await stage.running(session)
    await stage.finish(first, success(first, "first summary"))
    await stage.append(session, message("m3"))
    second = await stage.running(session)
    await stage.append(session, message("m4"))
    await stage.finish(second, success(second, "second summary"))
    async with stage.database.connect() as conn:
        for claim, summary, after in ((first, None, ["m1", "m2"]), (second, "first summary", ["m3"])):
            result = await results.get(conn, stage.tenant_id, claim.job.id)
            assert result is not None
            replaced = await sessions.load_replaced(conn, result)
            body = replaced.view.result_body
            assert (None if body is None else body.summary[0].content) == summary
            assert texts(replaced.view.messages) == after
            assert replaced.applied_through_seq is None


async def test_how_far_the_producer_was_told_is_known_to_the_next_result(stage: Stage) -> None:
    session = await stage.session(messages=2)
    first = await stage.running(session)
    await stage.finish(first, success(first))
    second = await stage.running(session)
    await stage.finish(second, success(second))
    async with stage.database.connect() as conn:
        taken = await results.get(conn, stage.tenant_id, first.job.id)
        later = await results.get(conn, stage.tenant_id, second.job.id)
        assert taken is not None
        assert later is not None
        at = await results.mark_applied(conn, taken, 7)
        assert await results.mark_applied(conn, taken, 9) == at
        assert (await sessions.load_replaced(conn, later)).applied_through_seq == 9


async def test_messages_that_were_gone_back_behind_leave_the_view_and_come_back_when_taken_up_again(
    stage: Stage,
) -> None:
    session = await stage.session(messages=4)
    async with stage.database.begin() as conn:
        assert await sessions.follow(conn, session.id, left=["u3", "u4", "unknown"], taken=["u1"]) == 2
        assert await sessions.follow(conn, session.id, left=["u3", "u4"], taken=["u1"]) == 0
    assert texts((await stage.live(session)).messages) == ["m1", "m2"]
    async with stage.database.begin() as conn:
        assert len(await sessions.load_full(conn, session.id)) == 4
        assert texts(await sessions.load_tail(conn, session.id, 1)) == ["m2"]
        assert await sessions.follow(conn, session.id, left=[], taken=["u3"]) == 1
    assert texts((await stage.live(session)).messages) == ["m1", "m2", "m3"]


async def test_a_rewind_behind_a_boundary_begins_the_view_where_it_began_before(stage: Stage) -> None:
    session = await stage.session(messages=2)
    await stage.append(session, message("boundary", uuid="b", starts_live=True), message("after", uuid="a"))
    async with stage.database.begin() as conn:
        await sessions.follow(conn, session.id, left=["b", "a"], taken=[])
    await stage.append(session, message("another way"))
    assert texts((await stage.live(session)).messages) == ["m1", "m2", "another way"]
    assert (await stage.reread(session)).boundary_seq == 0


@pytest.mark.parametrize(("left", "stands"), [("u2", False), ("u5", True)])
async def test_a_result_stands_unless_what_it_replaced_was_gone_back_behind(
    stage: Stage, left: str, *, stands: bool
) -> None:
    session = await stage.session(messages=3)
    claim = await stage.running(session)
    await stage.finish(claim, success(claim, "the summary"))
    await stage.append(session, message("m4", uuid="u4"), message("m5", uuid="u5"))
    async with stage.database.begin() as conn:
        assert await sessions.follow(conn, session.id, left=[left], taken=[]) == 1
    view = await stage.live(session)
    assert (view.result_body is not None) is stands
    assert texts(view.messages) == (["m4"] if stands else ["m1", "m3", "m4", "m5"])
