"""The guards in their order, and what is too little to compact."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compaction.core.jobs import Trigger
from compaction.core.messages import BOUNDARY_KIND, Message
from compaction.core.policy import Guards, nothing_to_compact, skip_reason

FULL = Guards(trigger="auto", tokens=167_000, threshold=167_000)
# Each guard alone, in the order of DESIGN §3; each one given also wins over all that follow it.
LADDER: list[tuple[dict[str, Any], str]] = [
    ({"disable_compact": True}, "disabled"),
    ({"breaker_open": True}, "circuit_open"),
    ({"query_source": "compact"}, "recursion_guard"),
    ({"disable_auto_compact": True}, "disabled"),
    ({"auto_compact_enabled": False}, "disabled"),
    ({"reactive_mode": True}, "reactive_mode"),
    ({"context_collapse": True}, "context_collapse"),
    ({"tokens": 166_999}, "below_threshold"),
]


def test_an_automatic_job_goes_on_when_no_guard_stands_in_its_way() -> None:
    assert skip_reason(FULL) is None


@pytest.mark.parametrize(("fields", "reason"), LADDER)
def test_each_guard_gives_its_reason(fields: dict[str, Any], reason: str) -> None:
    assert skip_reason(replace(FULL, **fields)) == reason


@pytest.mark.parametrize("place", range(len(LADDER)))
def test_the_first_guard_in_the_order_decides_the_reason(place: int) -> None:
    guards = FULL
    for fields, _ in LADDER[place:]:
        guards = replace(guards, **fields)
    assert skip_reason(guards) == LADDER[place][1]


@pytest.mark.parametrize("source", ["session_memory", "compact", "marble_origami"])
@pytest.mark.parametrize("trigger", ["auto", "manual", "reactive", "bulk"])
def test_no_trigger_compacts_what_compaction_itself_runs(source: str, trigger: Trigger) -> None:
    assert skip_reason(replace(FULL, trigger=trigger, query_source=source)) == "recursion_guard"


@pytest.mark.parametrize("source", [None, "main", "repl_main_thread", "Compact"])
def test_other_query_sources_are_no_recursion(source: str | None) -> None:
    assert skip_reason(replace(FULL, query_source=source)) is None


@pytest.mark.parametrize("trigger", ["manual", "reactive", "bulk"])
def test_every_trigger_obeys_the_main_switch(trigger: Trigger) -> None:
    assert skip_reason(replace(FULL, trigger=trigger, disable_compact=True)) == "disabled"


@pytest.mark.parametrize("trigger", ["manual", "reactive", "bulk"])
@pytest.mark.parametrize("fields", [fields for fields, _ in LADDER[3:]])
def test_the_automatic_guards_stop_automatic_jobs_alone(trigger: Trigger, fields: dict[str, Any]) -> None:
    assert skip_reason(replace(FULL, trigger=trigger, **fields)) is None


@pytest.mark.parametrize(
    ("trigger", "force", "reason"),
    [
        ("auto", False, "circuit_open"),
        ("auto", True, "circuit_open"),
        ("bulk", False, "circuit_open"),
        ("bulk", True, None),
        ("manual", False, None),
        ("reactive", False, None),
    ],
)
def test_an_open_breaker_stops_automatic_jobs_and_bulk_jobs_that_are_not_forced(
    trigger: Trigger, force: bool, reason: str | None
) -> None:
    assert skip_reason(replace(FULL, trigger=trigger, force=force, breaker_open=True)) == reason


def test_force_lifts_no_other_guard() -> None:
    assert skip_reason(replace(FULL, trigger="bulk", force=True, disable_compact=True)) == "disabled"
    assert skip_reason(replace(FULL, force=True, tokens=1)) == "below_threshold"


@pytest.mark.parametrize(
    ("size_bytes", "limit_bytes", "reason"),
    [(90, 100, None), (101, 100, None), (89, 100, "below_threshold"), (10**9, None, "below_threshold")],
)
def test_a_session_near_the_byte_limit_is_compacted_however_few_tokens_it_has(
    size_bytes: int, limit_bytes: int | None, reason: str | None
) -> None:
    """Nine tenths of the limit: the request has more to it than its messages, and the next turn comes on top."""
    assert skip_reason(replace(FULL, tokens=1, size_bytes=size_bytes, limit_bytes=limit_bytes)) == reason


def user(text: str = "Please.", *, is_compact_summary: bool = False) -> Message:
    return Message(role="user", content=text, is_compact_summary=is_compact_summary)


def call(number: int) -> Message:
    block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Query", "input": {}}
    return Message(role="assistant", content=[block], api_message_id=f"msg_{number}")


def result(number: int) -> Message:
    return Message(role="user", content=[{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "ok"}])


ANSWER = Message(role="assistant", content="Done.", api_message_id="msg_done")
BOUNDARY = Message(role="system", content="", metadata={"kind": BOUNDARY_KIND})


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user("Hello, are you there?")],
        [user(), user()],
        [ANSWER],
        [ANSWER, replace(ANSWER, api_message_id="msg_other")],  # nobody asked for anything
        [BOUNDARY, user("The summary.", is_compact_summary=True)],
        [BOUNDARY, user("The summary.", is_compact_summary=True), user("And now?")],
        [user(), replace(ANSWER, is_sidechain=True)],
        [user(), replace(ANSWER, partial=True)],
    ],
    ids=["empty", "one", "two users", "answer", "answers", "compacted", "asked again", "sidechain", "partial"],
)
def test_too_little_is_nothing_to_compact(messages: list[Message]) -> None:
    assert nothing_to_compact(messages)


@pytest.mark.parametrize(
    "messages",
    [
        [user(), ANSWER],
        [call(1), result(1), call(2), result(2), ANSWER],  # assistant and tool messages only
        [BOUNDARY, user("The summary.", is_compact_summary=True), ANSWER],
    ],
    ids=["one exchange", "tools only", "after a compaction"],
)
def test_two_rounds_with_a_user_message_are_enough(messages: list[Message]) -> None:
    assert not nothing_to_compact(messages)
