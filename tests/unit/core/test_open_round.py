"""A last round that waits for results."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from compaction.core import grouping
from compaction.core.messages import Message, conversation
from compaction.core.open_round import open_calls, open_round, sendable
from tests.unit.core import strategies

USE: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
TOLD: dict[str, Any] = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
ASK = Message(role="user", content="Go on.")
CALL = Message(role="assistant", content=[USE], api_message_id="m1")
ANSWER = Message(role="user", content=[TOLD])
FILES = Message(role="user", content="Files.", is_meta=True, metadata={"kind": "compact_attachment"})
HOOK = Message(role="user", content="Hook.", is_meta=True, metadata={"kind": "compact_hook_message"})


def test_a_call_without_a_result_is_open() -> None:
    odd = Message(role="assistant", content=[{"type": "tool_use", "id": None, "name": "Read", "input": {}}])
    assert open_calls([ASK, CALL, odd]) == {"t1"}
    assert open_calls([CALL, ANSWER]) == frozenset()


def test_the_last_round_is_open_with_all_that_stands_in_it() -> None:
    assert open_round([ASK, CALL, FILES]) == (CALL, FILES)
    assert open_round([ASK, CALL, ANSWER]) == ()
    assert open_round([]) == ()


def test_a_call_in_a_users_message_is_none() -> None:
    assert open_calls([Message(role="user", content=[USE])]) == frozenset()


def test_what_a_summary_covers_waits_no_more() -> None:
    summary = Message(role="user", content="All before.", is_compact_summary=True)
    assert open_round([ASK, CALL, summary]) == ()
    assert open_round([ASK, CALL, summary, ASK]) == ()
    assert open_round([summary, CALL]) == (CALL,)


def test_only_the_last_round_can_be_open() -> None:
    done = Message(role="assistant", content="Done.", api_message_id="m2")
    assert open_round([ASK, CALL, ASK, done]) == ()


@settings(deadline=None)
@given(strategies.histories())
def test_the_short_way_out_sees_what_the_rounds_say(history: tuple[Message, ...]) -> None:
    rounds = grouping.rounds(conversation(history))
    last = rounds[-1].messages if rounds else ()
    behind = last[max((place for place, one in enumerate(last, 1) if one.is_compact_summary), default=0) :]
    assert open_round(history) == (behind if open_calls(behind) else ())


def test_attachments_stand_before_an_open_round_in_what_is_sent() -> None:
    marker = Message(role="system", content="", metadata={"kind": "compact_boundary"})
    assert sendable([marker, ASK, CALL, FILES, HOOK]) == (marker, ASK, FILES, HOOK, CALL)


def test_without_an_open_round_nothing_moves() -> None:
    assert sendable([ASK, CALL, ANSWER, FILES]) == (ASK, CALL, ANSWER, FILES)
    assert sendable([ASK, CALL]) == (ASK, CALL)


def test_what_the_user_says_behind_an_open_round_stays_behind_it() -> None:
    assert sendable([CALL, FILES, ASK]) == (FILES, CALL, ASK)
