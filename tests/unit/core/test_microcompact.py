"""Time-based clearing, and clearing as preparation: by hand calculation on small sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compaction.core import microcompact, tokens
from compaction.core.messages import Message
from compaction.core.microcompact import CLEARED, CLEARED_TOKENS, MicroCompaction, prepare, time_based
from compaction.core.tool_table import ToolTable, tool_table

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LATER = START + timedelta(minutes=6)
BIG = "word" * 980  # a result of exactly 1,000 tokens: 980 and 20 around it (core/tokens.py)
SAVED = 1_000 - CLEARED_TOKENS  # by clearing one of them


def work(number: int, content: Any = BIG, name: str = "Read") -> list[Message]:  # noqa: ANN401 - a result's content
    call = {"type": "tool_use", "id": f"t{number}", "name": name, "input": {}}
    told = {"type": "tool_result", "tool_use_id": f"t{number}", "content": content}
    return [
        Message(role="assistant", content=[call], api_message_id=f"m{number}", created_at=START.isoformat()),
        Message(role="user", content=[told]),
    ]


def session(*parts: list[Message]) -> list[Message]:
    done = Message(role="assistant", content="Done.", api_message_id="last", created_at=START.isoformat())
    return [Message(role="user", content="Port it."), *(one for part in parts for one in part), done]


def ten(**changed: Any) -> list[Message]:  # noqa: ANN401 - contents
    return session(*(work(number, changed.get(f"t{number}", BIG)) for number in range(10)))


def cleared(messages: list[Message], now: datetime = LATER, **rules: Any) -> MicroCompaction | None:  # noqa: ANN401 - rules
    return time_based(messages, now=now, **{"table": ToolTable(), **rules})


def contents(found: MicroCompaction | None) -> list[Any]:
    assert found is not None
    return [block["content"] for one in found.messages for block in one.blocks() if block["type"] == "tool_result"]


def test_the_numbers_are_those_of_the_design_and_the_api() -> None:
    assert (microcompact.THRESHOLD_MS, microcompact.KEEP_RESULTS) == (300_000, 3)
    assert CLEARED_TOKENS < microcompact.MIN_RESULT_TOKENS


@pytest.mark.parametrize(
    ("age", "old"),
    [
        (timedelta(minutes=5), False),
        (timedelta(minutes=5, milliseconds=1), True),
        (timedelta(days=30), True),
        (timedelta(seconds=-5), False),
    ],
)
def test_it_waits_until_the_last_answer_is_older_than_five_minutes(age: timedelta, old: bool) -> None:
    assert (cleared(ten(), START + age) is not None) is old


def test_the_threshold_can_be_set() -> None:
    assert cleared(ten(), START + timedelta(seconds=2), threshold_ms=1_000) is not None
    assert cleared(ten(), START + timedelta(seconds=2), threshold_ms=2_000) is None


def test_an_answer_that_does_not_say_when_leaves_everything() -> None:
    assert cleared([*ten(), Message(role="assistant", content="Done.")]) is None
    assert cleared([]) is None


def test_old_results_are_cleared_and_the_newest_three_stay() -> None:
    found = cleared(ten())
    assert contents(found) == [CLEARED] * 7 + [BIG] * 3
    assert found is not None
    assert found.cleared_ids == tuple(f"t{number}" for number in range(7))
    assert (found.saved_tokens, found.kept_results) == (7 * SAVED, 3)


def test_the_results_to_keep_can_be_set() -> None:
    assert contents(cleared(ten(), keep_results=7)) == [CLEARED] * 3 + [BIG] * 7
    assert contents(cleared(ten(), keep_results=0)) == [CLEARED] * 10


def test_messages_without_a_change_stay_the_same_objects_and_the_old_ones_as_they_were() -> None:
    messages = ten()
    found = cleared(messages)
    assert found is not None
    same = [one is other for one, other in zip(found.messages, messages, strict=True)]
    assert same == [True, *[True, False] * 7, *[True] * 7]
    assert all(block.get("content") != CLEARED for one in messages for block in one.blocks())


def test_everything_else_of_a_result_stays() -> None:
    messages = ten()
    messages[2].blocks()[0].update(is_error=True, cache_control={"type": "ephemeral"})
    found = cleared(messages)
    assert found is not None
    assert found.messages[2].blocks() == [{**messages[2].blocks()[0], "content": CLEARED}]


@pytest.mark.parametrize("name", ["AskUserQuestion", "Agent", "Task", "TodoWrite", "mcp__db__query"])
def test_results_of_other_tools_are_never_touched(name: str) -> None:
    messages = session(*(work(number, name=name) for number in range(5)), *(work(number) for number in range(5, 11)))
    assert contents(cleared(messages)) == [BIG] * 5 + [CLEARED] * 3 + [BIG] * 3


def test_a_sessions_own_tools_can_be_cleared() -> None:
    messages = session(*(work(number, name="mcp__db__query") for number in range(8)))
    table = tool_table({"compactable_tools": {"mcp__db__query": True}})
    assert contents(cleared(messages, table=table)) == [CLEARED] * 5 + [BIG] * 3


def test_images_and_documents_in_results_go_too() -> None:
    """An image is 1,600 tokens, and 20 stand around the result."""
    image = [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]
    found = cleared(ten(t0=image, t1=[{"type": "document", "source": {"type": "url", "url": "https://example.org/a"}}]))
    assert contents(found)[:2] == [CLEARED, CLEARED]
    assert found is not None
    assert found.saved_tokens == 5 * SAVED + 2 * (1_620 - CLEARED_TOKENS)


def test_short_results_are_not_worth_a_marker() -> None:
    found = cleared(ten(t0="ok", t1=None, t2=[], t3="word" * 79))
    assert contents(found)[:5] == ["ok", None, [], "word" * 79, CLEARED]


def test_a_result_of_a_hundred_tokens_is() -> None:
    assert contents(cleared(ten(t0="word" * 80)))[0] == CLEARED


def test_saving_little_is_not_worth_losing_it() -> None:
    """Two results save 1,900 tokens, three save 2,850; the least is 2,000."""
    assert cleared(session(*(work(number) for number in range(5)))) is None
    assert cleared(session(*(work(number) for number in range(6)))) is not None
    assert cleared(session(*(work(number) for number in range(5))), min_saved_tokens=1_900) is not None


def test_what_was_cleared_is_not_cleared_again() -> None:
    found = cleared(ten())
    assert found is not None
    assert cleared(list(found.messages)) is None
    assert cleared(list(found.messages), already_cleared=frozenset(found.cleared_ids)) is None


def test_what_an_edit_of_the_api_cleared_is_rewritten_with_the_rest_but_not_counted() -> None:
    """Once the cache is cold, nobody sends the edit any more: its results have to go from the history itself."""
    found = cleared(ten(), already_cleared=frozenset({"t0", "t1"}))
    assert contents(found) == [CLEARED] * 7 + [BIG] * 3
    assert found is not None
    assert found.cleared_ids == ("t2", "t3", "t4", "t5", "t6")
    assert found.saved_tokens == 5 * SAVED
    assert cleared(ten(), already_cleared=frozenset(f"t{number}" for number in range(7))) is None


def test_thinking_behind_the_first_rewritten_message_goes() -> None:
    """The thought before it was signed for what still stands there. The one behind it takes 25 tokens with it."""
    messages = ten()
    thoughts = [{"type": "thinking", "thinking": "word" * 25, "signature": f"SIG{place}"} for place in range(3)]
    messages[1] = Message(role="assistant", content=[thoughts[0], *messages[1].blocks()], created_at=START.isoformat())
    messages[3] = Message(role="assistant", content=[thoughts[1], *messages[3].blocks()], created_at=START.isoformat())
    messages[-1] = Message(role="assistant", content=[thoughts[2]], created_at=START.isoformat())
    found = cleared(messages)
    assert found is not None
    left = [block["signature"] for one in found.messages for block in one.blocks() if block["type"] == "thinking"]
    assert left == ["SIG0"]
    assert len(found.messages) == len(messages) - 1
    assert found.saved_tokens == 7 * SAVED + 50


def test_two_results_in_one_message_are_cleared_one_by_one() -> None:
    call = {"type": "tool_use", "name": "Read", "input": {}}
    told = {"type": "tool_result", "content": BIG}
    messages = session(
        [
            Message(role="assistant", content=[{**call, "id": ident} for ident in "abcdef"], created_at="2026-11-30"),
            Message(role="user", content=[{**told, "tool_use_id": ident} for ident in "abcdef"]),
        ]
    )
    assert contents(cleared(messages)) == [CLEARED] * 3 + [BIG] * 3


def test_the_event_tells_ids_and_sizes() -> None:
    found = cleared(ten(), keep_results=7)
    assert found is not None
    assert found.event_fields() == {
        "cleared_tool_ids": ["t0", "t1", "t2"],
        "cleared_results": 3,
        "kept_results": 7,
        "saved_tokens": 3 * SAVED,
    }


# ------------------------------------------------------------------------------------------ as preparation of an input


@pytest.mark.parametrize(
    ("excess", "count"), [(1, 1), (SAVED, 1), (SAVED + 1, 2), (3 * SAVED, 3), (7 * SAVED, 7), (100_000, 7)]
)
def test_preparation_clears_the_oldest_results_until_enough_is_saved(excess: int, count: int) -> None:
    found = prepare(ten(), table=ToolTable(), excess_tokens=excess)
    assert contents(found) == [CLEARED] * count + [BIG] * (10 - count)
    assert found is not None
    assert found.saved_tokens == count * SAVED
    assert found.kept_results == 10 - count


@pytest.mark.parametrize("excess", [0, -5])
def test_an_input_that_fits_is_not_touched(excess: int) -> None:
    assert prepare(ten(), table=ToolTable(), excess_tokens=excess) is None


def test_an_input_without_results_cannot_be_prepared() -> None:
    assert prepare(session(), table=ToolTable(), excess_tokens=1_000) is None
    assert prepare(session(*(work(number) for number in range(3))), table=ToolTable(), excess_tokens=1_000) is None


def test_the_estimate_agrees_with_the_rewritten_messages() -> None:
    messages = ten()
    found = cleared(messages)
    assert found is not None
    assert tokens.estimate_messages(messages) - tokens.estimate_messages(found.messages) == found.saved_tokens


def test_a_long_mixed_result_is_estimated_from_a_sample() -> None:
    """A third of the characters are digits at three quarters of a token, so the whole is 30,000 × 5/12 tokens."""
    told = {"type": "tool_result", "tool_use_id": "t", "content": "ab1" * 10_000}
    assert microcompact.saving(told) == pytest.approx(12_500, rel=0.02)
    assert microcompact.saving({"type": "tool_result", "content": "ab1" * 40}) == 50 + 20 - CLEARED_TOKENS
