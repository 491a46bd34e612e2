from __future__ import annotations

import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.core.boundary import live
from compaction.core.messages import Message, decode_message
from compaction.core.rebuilt import ATTACHMENT_KIND
from compaction.formats import claude_code
from compaction.formats.log_output import LogPlace, log_rows
from tests.unit.formats.log import SESSION, Log

FACTS = {"kind": "compact_boundary", "trigger": "auto", "pre_tokens": 160_000}
MARK = Message(role="system", content="", uuid="b-1", metadata=FACTS)
SUMMARY = Message(role="user", content="So far so good.", uuid="s-1", parent_uuid="b-1", is_compact_summary=True)
TIME = datetime(2026, 5, 1, 11, tzinfo=UTC)


def a_log() -> Log:
    log = Log()
    log.user()
    log.assistant([{"type": "tool_use", "id": "c-1", "name": "Read", "input": {}}])
    log.result("c-1")
    log.assistant("Done.")
    return log


def output(log: Log, messages: list[Message], session_id: str = SESSION) -> bytes:
    place = LogPlace(session_id=session_id, last_uuid=log.last, created_at=TIME)
    return b"".join(log_rows(messages, place, model="claude-sonnet-4-5"))


def loaded(data: bytes) -> tuple[Message, ...]:
    return tuple(decode_message(body) for body in claude_code.read(io.BytesIO(data)).bodies())


def told(messages: tuple[Message, ...] | list[Message]) -> list[tuple[str, object]]:
    return [(one.role, one.content) for one in messages if one.role != "system"]


def test_the_boundary_and_the_summary_have_the_fields_of_real_rows() -> None:
    log = a_log()
    boundary, summary = (json.loads(row) for row in output(log, [MARK, SUMMARY]).splitlines())
    assert boundary["parentUuid"] is None
    assert boundary["logicalParentUuid"] == log.last
    assert (boundary["type"], boundary["subtype"]) == ("system", "compact_boundary")
    assert boundary["compactMetadata"] == {"trigger": "auto", "preTokens": 160_000}
    assert (summary["parentUuid"], summary["type"]) == (boundary["uuid"], "user")
    assert summary["isCompactSummary"] is summary["isVisibleInTranscriptOnly"] is True
    assert summary["message"] == {"role": "user", "content": "So far so good."}
    assert {row["sessionId"] for row in (boundary, summary)} == {SESSION}
    assert [row["timestamp"] for row in (boundary, summary)] == ["2026-05-01T11:00:00.000Z", "2026-05-01T11:00:00.001Z"]


def test_kept_messages_that_stand_in_the_file_already_come_again_behind_the_boundary() -> None:
    log = a_log()
    kept = list(loaded(log.data)[1:])
    messages = [MARK, SUMMARY, *kept, Message(role="user", content="The file again.", uuid="a-1", is_meta=True)]
    grown = log.data + output(log, messages)
    assert told(live(loaded(grown))) == told(messages)
    report = claude_code.read(io.BytesIO(grown)).report
    assert (report.off_branch_rows, report.duplicate_uuid_row_count, report.missing_parents) == (0, 0, 0)
    assert report.current_window.orphan_tool_result == 0


def test_the_next_turn_of_the_log_goes_on_behind_the_output() -> None:
    log = a_log()
    for row in output(log, [MARK, SUMMARY]).splitlines():
        log.line(row)
    log.last = "s-1"
    log.user("And now?")
    assert told(live(loaded(log.data))) == [("user", "So far so good."), ("user", "And now?")]


def test_an_earlier_summary_that_was_kept_begins_no_live_view_of_its_own() -> None:
    log = Log()
    log.boundary()
    earlier = log.user("The first summary.", isCompactSummary=True)
    log.assistant("Going on.")
    kept = Message(role="user", content="The first summary.", uuid=earlier, is_compact_summary=True)
    messages = [MARK, SUMMARY, kept]
    found = live(loaded(log.data + output(log, messages)))
    assert told(found) == told(messages)
    assert [one.is_compact_summary for one in found[1:]] == [True, False]


def test_a_sub_agents_rows_stay_beside_the_main_thread() -> None:
    log = Log()
    log.user(isSidechain=True, agentId="a1")
    name = claude_code.read(log.file()).session_id
    grown = log.data + output(log, [MARK, SUMMARY], name)
    assert claude_code.read(io.BytesIO(grown)).session_id == name
    assert told(live(loaded(grown))) == told([SUMMARY])


@pytest.mark.parametrize("name", ["s:agent-", ":agent-a1"])
def test_an_id_that_only_looks_like_a_sub_agents_stays_whole(name: str) -> None:
    log = Log(name)
    log.user()
    grown = log.data + output(log, [MARK, SUMMARY], name)
    assert claude_code.read(io.BytesIO(grown)).session_id == name


def test_a_text_that_was_kept_without_a_summary_does_not_pass_for_one() -> None:
    """The result of a micro-compaction: a text right behind a boundary is the summary in logs of old versions."""
    log = a_log()
    messages = [MARK, *loaded(log.data)]
    found = live(loaded(log.data + output(log, messages)))
    assert told(found) == told(messages)
    assert not any(one.is_compact_summary for one in found)


def test_every_row_is_younger_than_the_one_before_it() -> None:
    """Claude Code goes on from the row with the newest time, and kept messages are older than their summary."""
    log = a_log()
    rows = [json.loads(row) for row in output(log, [MARK, SUMMARY, *loaded(log.data)]).splitlines()]
    times = [row["timestamp"] for row in rows]
    assert times[-1] == "2026-05-01T11:00:00.005Z"
    assert sorted(set(times)) == times


def test_an_open_call_comes_last_so_that_its_result_can_follow() -> None:
    log = Log()
    log.user()
    log.call("c-1", message_id="m-1")
    kept = loaded(log.data)[1:]
    added = Message(role="user", content="The file.", uuid="a-1", is_meta=True, metadata={"kind": ATTACHMENT_KIND})
    rows = output(log, [MARK, SUMMARY, *kept, added])
    log.lines += rows.splitlines()
    log.last = json.loads(log.lines[-1])["uuid"]
    log.result("c-1")
    found = live(loaded(log.data))
    assert told(found)[1] == ("user", "The file.")
    assert [role for role, _ in told(found)] == ["user", "user", "assistant", "user"]


def test_nothing_has_no_rows() -> None:
    assert output(a_log(), []) == b""


texts = st.text(max_size=20)
contents = st.one_of(texts, st.lists(texts.map(lambda text: {"type": "text", "text": text}), min_size=1, max_size=3))
plain_messages = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant"]),
    content=contents,
    uuid=st.one_of(st.none(), st.sampled_from(["row-1", "row-2", "row-3"])),
    api_message_id=st.one_of(st.none(), st.just("msg_1")),
    is_meta=st.booleans(),
)


@given(st.lists(plain_messages, max_size=6, unique_by=lambda one: one.uuid or id(one)), st.booleans())
def test_the_file_with_the_output_behind_it_has_the_result_as_its_live_view(
    kept: list[Message], has_summary: bool
) -> None:
    log = a_log()
    messages = [MARK, *([SUMMARY] if has_summary else []), *kept]
    grown = log.data + output(log, messages)
    if len(messages) > 1:
        assert told(live(loaded(grown))) == told(messages)


def real_logs() -> list[Path]:
    default = Path(__file__).parents[4] / "shared" / "transcripts"
    folder = Path(os.environ.get("COMPACTD_TEST_TRANSCRIPTS", default))
    whole = (
        path for path in folder.glob("claude_code/**/*.jsonl") if path.stat().st_size > 100_000
    )  # smaller ones may say nothing
    return sorted(whole, key=lambda path: path.stat().st_size)[:12]


def test_real_logs_take_the_output_as_their_live_view() -> None:
    found = real_logs()
    if not found:
        pytest.skip("the real transcripts are not here; the small logs above cover the same rule")
    for path in found:
        data = path.read_bytes()
        transcript = claude_code.read(io.BytesIO(data))
        kept = [one for one in loaded(data) if one.in_conversation][-3:]
        messages = [MARK, SUMMARY, *kept]
        place = LogPlace(session_id=transcript.session_id, last_uuid=kept[-1].uuid, created_at=TIME)
        behind = b"".join(log_rows(messages, place, model="claude-sonnet-4-5"))
        grown = data + (b"" if data.endswith(b"\n") else b"\n") + behind
        assert told(live(loaded(grown))) == told(messages), path.name
        assert claude_code.read(io.BytesIO(grown)).session_id == transcript.session_id
