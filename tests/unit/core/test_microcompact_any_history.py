"""What clearing promises for any history."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import microcompact, tokens, wire
from compaction.core.exchanges import exchanges
from compaction.core.messages import Message
from compaction.core.microcompact import MicroCompaction
from compaction.core.tool_table import ToolTable
from tests.unit.core.rules import broken_rules, open_calls
from tests.unit.core.strategies import clean_sessions, histories, live_views

NOW = datetime(2026, 12, 24, tzinfo=UTC)
TABLE = ToolTable()
LARGE = "word" * 200
MOST = settings(max_examples=300, deadline=None)


@st.composite
def old_views(draw: st.DrawFn) -> tuple[Message, ...]:
    """A live view whose last answer is old, and whose results are large now and then."""
    messages = draw(live_views(st.one_of(histories(), clean_sessions())))
    for message in messages:
        for block in message.blocks():
            if block["type"] == "tool_result" and draw(st.booleans()):
                block["content"] = LARGE
    end = {"role": "assistant", "content": "Done.", "created_at": "2026-11-30T10:00:00Z"}
    return (*messages, Message(**end))  # type: ignore[arg-type]  # the fields of a message


def cleared(messages: tuple[Message, ...], keep: int, seen: frozenset[str] = frozenset()) -> MicroCompaction | None:
    return microcompact.time_based(
        messages, now=NOW, table=TABLE, keep_results=keep, already_cleared=seen, min_saved_tokens=1
    )


def told(messages: tuple[Message, ...]) -> list[Any]:
    """Everything but thinking and the results of tools that can be cleared."""
    results = {id(one.result) for one in exchanges(messages) if TABLE.compactable(one.call.get("name"))}
    return [
        (message.role, block)
        for message in messages
        for block in message.blocks()
        if id(block) not in results and block["type"] not in ("thinking", "redacted_thinking")
    ]


@MOST
@given(old_views(), st.integers(0, 4))
def test_only_clearable_results_and_thinking_change(messages: tuple[Message, ...], keep: int) -> None:
    before = copy.deepcopy(messages)
    found = cleared(messages, keep)
    assert repr(messages) == repr(before)
    if found is not None:
        assert repr(told(found.messages)) == repr(told(messages))


@MOST
@given(old_views(), st.integers(0, 4))
def test_it_shrinks_by_what_it_says(messages: tuple[Message, ...], keep: int) -> None:
    found = cleared(messages, keep)
    if found is not None:
        shrunk = tokens.estimate_messages(messages) - tokens.estimate_messages(found.messages)
        assert shrunk == found.saved_tokens > 0
        assert len(found.cleared_ids) > 0


@MOST
@given(old_views(), st.integers(0, 4))
def test_clearing_again_finds_nothing(messages: tuple[Message, ...], keep: int) -> None:
    found = cleared(messages, keep)
    if found is not None:
        assert cleared(found.messages, keep) is None


@MOST
@given(old_views(), st.integers(0, 4))
def test_no_thinking_stands_behind_a_rewritten_message(messages: tuple[Message, ...], keep: int) -> None:
    found = cleared(messages, keep)
    if found is None:
        return
    unchanged = {id(message) for message in messages}
    first = next(place for place, message in enumerate(found.messages) if id(message) not in unchanged)
    behind = [block["type"] for message in found.messages[first:] for block in message.blocks()]
    assert not {"thinking", "redacted_thinking"} & set(behind)


@MOST
@given(old_views(), st.integers(0, 4))
def test_the_rewritten_history_is_valid(messages: tuple[Message, ...], keep: int) -> None:
    found = cleared(messages, keep)
    if found is None:
        return
    sent = wire.api_messages(found.messages)
    results = [{"type": "tool_result", "tool_use_id": ident, "content": "ok"} for ident in open_calls(sent)]
    assert broken_rules([*sent, {"role": "user", "content": [*results, {"type": "text", "text": "And now?"}]}]) == []


@MOST
@given(old_views(), st.integers(1, 2_000))
def test_preparation_saves_enough_or_all_it_can(messages: tuple[Message, ...], excess: int) -> None:
    found = microcompact.prepare(messages, table=TABLE, excess_tokens=excess)
    everything = cleared(messages, microcompact.KEEP_RESULTS)
    if found is None:
        assert everything is None
    elif found.saved_tokens < excess:
        assert everything is not None
        assert found.cleared_ids == everything.cleared_ids
