from __future__ import annotations

import re

import pytest

from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, decode_message
from compaction.formats import claude_code
from compaction.formats.report import LastUsage
from compaction.formats.transcript import Transcript
from tests.unit.formats.log import MODEL, SESSION, Log, encoded


def read(log: Log) -> tuple[Transcript, list[Message]]:
    transcript = claude_code.read(log.file())
    return transcript, [decode_message(body) for body in transcript.bodies()]


def texts(messages: list[Message]) -> list[Json]:
    return [one.content if isinstance(one.content, str) else one.content[0].get("text") for one in messages]


def test_each_row_of_the_conversation_becomes_one_message_in_file_order() -> None:
    log = Log()
    question = log.user("Which cash book?")
    log.assistant("The blue one.", message={"usage": {"input_tokens": 9, "output_tokens": 2}})
    transcript, (first, second) = read(log)
    assert (transcript.session_id, transcript.named_by_file, transcript.model) == (SESSION, True, MODEL)
    assert (first.role, first.content, first.uuid) == ("user", "Which cash book?", question)
    assert (second.role, second.parent_uuid, second.api_message_id) == ("assistant", question, "msg_2")
    assert transcript.report.last_usage == LastUsage(
        line=2,
        input_tokens=9,
        output_tokens=2,
        cache_read_input_tokens=0,
        cache_creation_input_tokens=0,
        prompt_tokens=9,
    )


def test_importing_again_after_the_log_has_grown_gives_the_old_rows_the_same_bodies() -> None:
    log = Log()
    log.user()
    log.line(encoded({"type": "assistant", "message": {"content": "no uuid here"}}))
    before = list(claude_code.read(log.file()).bodies())
    log.line(encoded({"type": "user", "message": {"content": "nor here"}}))
    after = list(claude_code.read(log.file()).bodies())
    assert len(before) == 2
    assert after[:2] == before
    assert len(after) == 3


def test_rows_that_are_no_messages_are_skipped_and_counted_by_type() -> None:
    log = Log()
    log.user()
    log.row("progress", data={"message": {"type": "user", "message": {"content": "a sub-agent's"}}})
    log.row("system", subtype="turn_duration")
    log.row("system", subtype="api_error", error={"status": 529})
    log.line(encoded({"type": "file-history-snapshot", "snapshot": {}}))
    log.line(encoded({"type": "summary", "summary": "A title", "leafUuid": "row-1"}))
    log.line(encoded({"type": "something-new", "uuid": "n-1"}))
    log.assistant()
    transcript, messages = read(log)
    assert [one.role for one in messages] == ["user", "assistant"]
    assert transcript.report.row_types == {
        "assistant": 1,
        "file-history-snapshot": 1,
        "progress": 1,
        "something-new": 1,
        "summary": 1,
        "system:api_error": 1,
        "system:turn_duration": 1,
        "user": 1,
    }
    assert transcript.report.api_error_rows == 1


def test_a_sub_agents_rows_inside_the_main_log_are_skipped_and_counted() -> None:
    log = Log()
    root = log.user("main")
    log.user("task", isSidechain=True, parentUuid=None)
    log.assistant("its work", isSidechain=True)
    log.row("progress", isSidechain=True)
    log.assistant("main again", parentUuid=root)
    transcript, messages = read(log)
    assert texts(messages) == ["main", "main again"]
    report = transcript.report
    assert (report.sidechain_rows_skipped, report.sidechain_conversation_rows_skipped) == (3, 2)
    assert (report.thread, report.off_branch_rows) == ("main", 0)


def test_a_sub_agents_own_file_is_a_session_of_its_own() -> None:
    log = Log()
    log.user("task", isSidechain=True, agentId="a1b2")
    log.assistant("its work", isSidechain=True, agentId="a1b2")
    transcript, messages = read(log)
    assert transcript.session_id == f"{SESSION}:agent-a1b2"
    assert texts(messages) == ["task", "its work"]
    assert not any(one.is_sidechain for one in messages)
    assert transcript.report.thread == "subagent"


def test_a_sub_agent_without_an_id_is_told_apart_from_its_session_all_the_same() -> None:
    log = Log()
    log.user("task", isSidechain=True)
    first = claude_code.read(log.file()).session_id
    log.assistant("more", isSidechain=True)
    assert re.fullmatch(rf"{SESSION}:agent-[0-9a-f]{{40}}", first)
    assert claude_code.read(log.file()).session_id == first


@pytest.mark.parametrize("session", [None, "", "has spaces", "x" * 201, "a/b"])
def test_a_log_without_a_usable_session_id_gets_one_that_stays_the_same(session: str | None) -> None:
    log = Log(session)
    log.user()
    first = claude_code.read(log.file())
    log.assistant()
    assert re.fullmatch("import-[0-9a-f]{40}", first.session_id)
    assert not first.named_by_file
    assert claude_code.read(log.file()).session_id == first.session_id


def test_answers_that_no_model_gave_are_dropped_and_counted() -> None:
    log = Log()
    log.user()
    log.assistant("Good.")
    log.assistant("API Error", isApiErrorMessage=True)
    log.assistant("No response", message={"model": "<synthetic>"})
    transcript, messages = read(log)
    assert texts(messages)[1:] == ["Good."]
    assert transcript.model == MODEL
    assert transcript.report.synthetic_assistant_rows_dropped == 2
    assert (transcript.report.full_history.rows_used, transcript.report.stored_messages) == (4, 2)


def test_meta_rows_are_kept_with_their_flag() -> None:
    log = Log()
    log.user("<reminder>be brief</reminder>", isMeta=True)
    log.assistant()
    transcript, messages = read(log)
    assert [one.is_meta for one in messages] == [True, False]
    assert transcript.report.meta_user_rows == 1


def test_parallel_calls_in_late_fragments_join_one_message() -> None:
    log = Log()
    log.user()
    first = log.call("c1", message_id="msg_par")
    second = log.call("c2", message_id="msg_par")
    log.result("c1", parentUuid=first, sourceToolAssistantUUID=first)
    third = log.call("c3", message_id="msg_par", parentUuid=second)
    log.result("c2", parentUuid=second, sourceToolAssistantUUID=second)
    log.result("c3", parentUuid=third, sourceToolAssistantUUID=third)
    log.assistant("All read.")
    transcript, messages = read(log)
    assert [one.api_message_id for one in messages].count("msg_par") == 3
    facts = transcript.report.full_history
    assert (facts.messages, facts.rows_used, facts.tool_use, facts.tool_result) == (4, 8, 3, 3)
    assert (facts.orphan_tool_use, facts.orphan_tool_result) == (0, 0)
    assert transcript.report.fragments_merged == 2


def test_a_rewound_turn_is_left_out_and_counted() -> None:
    log = Log()
    log.user("go")
    fork = log.assistant("gone")
    log.user("wrong way")
    log.assistant("lost")
    log.user("right way", parentUuid=fork)
    transcript, messages = read(log)
    assert texts(messages) == ["go", "gone", "right way"]
    assert transcript.report.off_branch_rows == 2
    assert len(transcript.left_uuids) == 2
    assert transcript.report.file_order_messages == 5
    assert transcript.report.full_history.messages == 3


def test_a_compaction_in_the_log_is_stored_with_its_boundary_and_its_summary() -> None:
    log = Log()
    log.user("long ago")
    log.assistant("yes", message={"usage": {"input_tokens": 1, "cache_read_input_tokens": 150_000}})
    log.boundary()
    log.user("We had talked about books.", isCompactSummary=True)
    log.assistant("Going on.")
    transcript, messages = read(log)
    assert [one.role for one in messages] == ["user", "assistant", "system", "user", "assistant"]
    assert messages[2].is_boundary
    assert messages[2].parent_uuid == "row-2"
    assert [one.is_compact_summary for one in messages] == [False, False, False, True, False]
    assert transcript.report.to_dict()["boundaries"] == [
        {
            "kind": "compact",
            "line": 3,
            "trigger": "auto",
            "pre_tokens": 160_000,
            "on_branch": True,
            "summary_line": 4,
            "summary_chars": 26,
            "logical_parent_in_file": True,
            "last_prompt_tokens_before": 150_001,
            "tokens_saved": None,
            "compacted_tool_ids": None,
        }
    ]
    assert (transcript.report.full_history.messages, transcript.report.current_window.messages) == (4, 2)


def test_a_text_row_right_under_a_boundary_is_its_summary_even_without_the_flag() -> None:
    log = Log()
    log.user("long ago")
    log.boundary()
    log.user("We had talked about books.")
    log.user("And now?")
    assert [one.is_compact_summary for one in read(log)[1]] == [False, False, True, False]


def test_a_micro_compaction_is_stored_as_a_marker_and_the_results_stay() -> None:
    log = Log()
    log.user()
    log.call("c1", message_id="m")
    log.result("c1", "the whole file")
    told = {"trigger": "auto", "preTokens": 50_000, "tokensSaved": 20_000, "compactedToolIds": ["c1"]}
    log.row("system", subtype="microcompact_boundary", content="Cleared", microcompactMetadata=told)
    log.assistant()
    transcript, messages = read(log)
    assert messages[3].metadata is not None
    assert messages[3].metadata["compacted_tool_ids"] == ["c1"]
    assert not messages[3].is_boundary
    assert messages[2].content == [{"type": "tool_result", "tool_use_id": "c1", "content": "the whole file"}]
    assert transcript.report.boundaries[0].tokens_saved == 20_000
    assert transcript.report.current_window == transcript.report.full_history


def test_a_log_that_starts_in_the_middle_is_imported_from_there() -> None:
    log = Log()
    log.last = "in-another-file"
    log.assistant("…and so on")
    log.user("Good.")
    transcript, messages = read(log)
    assert [one.role for one in messages] == ["assistant", "user"]
    assert transcript.report.starts_mid_chain
    assert transcript.report.missing_parents == 1


def test_a_missing_parent_in_the_middle_loses_nothing_before_it() -> None:
    log = Log()
    log.user("before")
    log.assistant("still before")
    log.user("after", parentUuid="nowhere")
    transcript, messages = read(log)
    assert texts(messages) == ["before", "still before", "after"]
    assert transcript.report.missing_parents == 1
