"""Histories and replies that are made to cost: the work stays within bounds, whatever they say."""

from __future__ import annotations

import tracemalloc

from compaction.core import attachments, summary, tokens, truncation, wire
from compaction.core.messages import Message, Usage
from compaction.core.recent_files import MAX_FOLLOWED_CHARS
from compaction.core.session_state import SessionState
from compaction.core.tool_table import tool_table
from compaction.errors import PromptTooLong
from tests.unit.fakes import SECTIONS, summary_reply

ROUND = 20_000


def test_an_edit_that_multiplies_a_file_takes_no_more_room_than_is_followed() -> None:
    """200,000 places times 50,000 characters would be ten gigabytes; what is kept begins as the whole would."""
    calls = [
        {"type": "tool_use", "id": "w", "name": "Write", "input": {"file_path": "/a", "content": "b" * 200_000}},
        {
            "type": "tool_use",
            "id": "e",
            "name": "Edit",
            "input": {"file_path": "/a", "old_string": "b", "new_string": "c" * 50_000, "replace_all": True},
        },
    ]
    results = [{"type": "tool_result", "tool_use_id": name, "content": "ok"} for name in "we"]
    history = [Message(role="assistant", content=calls), Message(role="user", content=results)]
    tracemalloc.start()
    state = attachments.with_transcript_files(SessionState(), history, (), tool_table({}))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * MAX_FOLLOWED_CHARS
    assert state.files[0].text is not None
    assert set(state.files[0].text) == {"c"}


def test_an_answer_of_very_many_fragments_is_counted() -> None:
    """A list of 20,000 fragments is looked through once, not 20,000 times."""
    usage = Usage(input_tokens=10, output_tokens=5)
    fragments = [
        Message(role="assistant", content="t", api_message_id="m", usage=usage, uuid=f"u{number}")
        for number in range(ROUND)
    ]
    counted = tokens.session_tokens([Message(role="user", content="q"), *fragments])
    assert counted.tokens >= usage.total_tokens


def test_a_long_head_is_not_copied_for_each_round_that_is_dropped() -> None:
    """100,000 system messages before 20,000 rounds: copying it each time would be two thousand million copies."""
    head = [Message(role="system", content="s")] * (5 * ROUND)
    rounds = [Message(role="assistant", content="a" * 40, api_message_id=f"m{number}") for number in range(ROUND)]
    found = truncation.cut([*head, *rounds], PromptTooLong(gap=999_999_999, actual=1_000_000_000, limit=1))
    assert (found.dropped_rounds, found.remaining_rounds) == (ROUND - 1, 1)
    assert found.messages[5 * ROUND] == truncation.retry_marker()


def test_a_stored_summary_of_nothing_but_headings_is_read_to_an_end() -> None:
    wrapped = Message(role="user", is_compact_summary=True, content=f"\n{summary.HEADING}\n" * ROUND)
    assert summary.extract_summary_text(wrapped) is not None
    first = "1. Primary Request and Intent: x\n" * ROUND
    assert summary.extract_summary_text(Message(role="user", is_compact_summary=True, content=first)) is not None


def test_a_reply_inside_very_many_tags_is_read_to_an_end() -> None:
    reply = summary_reply("<summary>" * 2_000 + SECTIONS + "</summary>" * 2_000)
    assert "Primary Request" in summary.validate(reply).text


def test_a_call_made_by_a_server_call_that_comes_later_keeps_nothing_alive() -> None:
    """The server call has no result and never will: it must not be sent."""
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    history = [
        Message(role="user", content="q"),
        Message(
            role="assistant",
            content=[
                {"type": "tool_use", "id": "t1", "name": "g", "input": {}, "caller": caller},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}},
            ],
        ),
        Message(
            role="user",
            content=[{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}, {"type": "text", "text": "go"}],
        ),
    ]
    sent = wire.api_messages(history)
    kinds = [block["type"] for message in sent if isinstance(message["content"], list) for block in message["content"]]
    assert "server_tool_use" not in kinds
