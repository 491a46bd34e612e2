"""Whatever a producer stored, what we send is valid. Rules for every history, checked on generated ones."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import wire
from compaction.core.messages import Message, decode_message, envelope
from compaction.core.open_round import sendable
from compaction.core.repair import repair
from compaction.core.turns import distinct, merge
from tests.unit.core.oracle import oracle
from tests.unit.core.rules import broken_rules, open_calls
from tests.unit.core.strategies import histories

NEXT = {"role": "user", "content": "And now?"}


def _as_messages(turns: list[dict[str, Any]]) -> list[Message]:
    return [Message(role=turn["role"], content=turn["content"]) for turn in turns]


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)  # so that an escaped pair differs from its character


@settings(max_examples=200, deadline=None)
@given(histories())
def test_with_calls_closed_any_history_is_valid_when_the_user_goes_on(history: tuple[Message, ...]) -> None:
    assert broken_rules([*wire.api_messages(history, close_open=True), NEXT]) == []


@settings(max_examples=200, deadline=None)
@given(histories())
def test_with_calls_open_any_history_is_valid_when_their_results_come(history: tuple[Message, ...]) -> None:
    sent = wire.api_messages(history)
    results = [{"type": "tool_result", "tool_use_id": ident, "content": "ok"} for ident in open_calls(sent)]
    assert broken_rules([*sent, {"role": "user", "content": [*results, {"type": "text", "text": "And now?"}]}]) == []


@settings(max_examples=200, deadline=None)
@given(histories())
def test_a_summary_message_of_ours_stands_in_every_list(history: tuple[Message, ...]) -> None:
    """Whatever follows it, the API's own summaries too, and behind none of these."""
    ours = Message(role="user", content="OUR SUMMARY.", is_compact_summary=True)
    told = _text(wire.api_messages([ours, *history]))
    assert "OUR SUMMARY." in told
    assert '"compaction"' not in told


@settings(max_examples=150, deadline=None)
@given(histories())
def test_a_second_checker_agrees(history: tuple[Message, ...]) -> None:
    assert oracle().check_messages([*wire.api_messages(history, close_open=True), NEXT]) == []


@settings(max_examples=100, deadline=None)
@given(histories(), st.booleans())
def test_repairing_what_was_repaired_changes_nothing(history: tuple[Message, ...], close_open: bool) -> None:
    once = wire.api_messages(history, close_open=close_open)
    assert _text(wire.api_messages(_as_messages(once), close_open=close_open)) == _text(once)


@settings(max_examples=100, deadline=None)
@given(histories(), st.booleans())
def test_the_report_is_empty_exactly_when_nothing_changed(history: tuple[Message, ...], faithful: bool) -> None:
    turns = merge(history)
    repaired, report = repair(turns, faithful=faithful)
    assert (report.total == 0) == (_text(repaired) == _text(turns))
    if report.total == 0:
        assert all(one is two for one, two in zip(repaired, turns, strict=True))


@settings(max_examples=100, deadline=None)
@given(histories())
def test_nothing_that_was_stored_is_changed_in_place(history: tuple[Message, ...]) -> None:
    before = copy.deepcopy([message.content for message in history])
    wire.api_messages(history, close_open=True)
    assert _text([message.content for message in history]) == _text(before)


@settings(max_examples=100, deadline=None)
@given(histories())
def test_what_the_bytes_proved_need_not_be_looked_at_again(history: tuple[Message, ...]) -> None:
    """Repair that trusts the bytes of the stored bodies gives what repair that looks at everything gives."""
    read = [decode_message(json.dumps(envelope(message)).encode()) for message in history]
    assert _text(wire.api_messages(read)) == _text(repair(merge(sendable(read)))[0])


@settings(max_examples=100, deadline=None)
@given(histories())
def test_merging_alternates_roles_and_keeps_every_block(history: tuple[Message, ...]) -> None:
    turns = merge(history)
    roles = [turn["role"] for turn in turns]
    assert all(one != two for one, two in pairwise(roles))
    stored = [block for message in distinct(history) for block in message.blocks()]
    merged = [block for message in _as_messages(turns) for block in message.blocks()]
    assert sorted(map(_text, merged)) == sorted(map(_text, stored))


@settings(max_examples=100, deadline=None)
@given(histories())
def test_a_hash_changes_exactly_with_role_and_content(history: tuple[Message, ...]) -> None:
    spoken = [message for message in history if message.in_conversation]
    bare = [Message(role=message.role, content=message.content) for message in spoken]
    hashes = wire.prefix_hashes(history)
    assert hashes == wire.prefix_hashes(bare)
    assert len(hashes) == len(spoken)
    for place, message in enumerate(bare):
        flipped = Message(role="user" if message.role == "assistant" else "assistant", content=message.content)
        longer = Message(role=message.role, content=[*message.blocks(), {"type": "text", "text": "more"}])
        for changed in (flipped, longer):
            others = wire.prefix_hashes([*bare[:place], changed, *bare[place + 1 :]])
            assert others[:place] == hashes[:place]
            assert not set(others[place:]) & set(hashes[place:])
