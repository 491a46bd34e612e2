"""The request that shares the main conversation's prompt cache."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from compaction.core.messages import Message
from compaction.core.turns import merge
from compaction.core.wire import PrefixNotShareable, shared_prefix_body
from compaction.ports import SummaryRequest
from tests.unit.core.rules import broken_rules
from tests.unit.core.samples import MARK, assistant, result, text, thinking, use, user
from tests.unit.core.strategies import histories

HOUR = {"type": "ephemeral", "ttl": "1h"}
TOOLS = [{"name": "Read", "input_schema": {"type": "object"}}]


def request(*messages: Message, **fields: Any) -> SummaryRequest:  # noqa: ANN401 - the port's fields
    given: dict[str, Any] = {
        "kind": "shared_prefix",
        "model": "claude-opus-5-5",
        "messages": messages,
        "system_prompt": "not sent",
        "user_prompt": "Summarise now.",
        "max_output_tokens": 20_000,
        "session_system": "You code.",
        "session_tools": TOOLS,
        **fields,
    }
    return SummaryRequest(**given)


def body_of(*messages: Message, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - the port's fields
    body: dict[str, Any] = json.loads(shared_prefix_body(request(*messages, **fields))[0])
    return body


def marks(value: Any) -> int:  # noqa: ANN401 - any JSON
    return json.dumps(value).count('"cache_control"')


def unmarked(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, list):
        return [unmarked(item) for item in value]
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    return value


HISTORY = (
    user("go"),
    assistant(thinking(), use("t1"), api_message_id="m1"),
    user(result("t1", "one"), text("reminder")),
    assistant("done", api_message_id="m2"),
)


def test_everything_is_as_the_session_sent_it_plus_one_user_message() -> None:
    body = body_of(*HISTORY)
    assert body == {
        "model": "claude-opus-5-5",
        "max_tokens": 20_000,
        "stream": True,
        "tools": TOOLS,
        "system": "You code.",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [thinking(), use("t1")]},
            {"role": "user", "content": [result("t1", "one"), text("reminder", cache_control=MARK)]},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": [text("Summarise now.")]},
        ],
    }


def test_the_mark_stands_where_the_last_request_ended_also_when_the_user_went_on() -> None:
    body = body_of(*HISTORY, user("thanks"))
    assert marks(body["messages"][2]) == 1
    assert marks(body) == 1


def test_a_string_is_marked_as_a_block() -> None:
    body = body_of(user("go"), assistant("done"))
    assert body["messages"][0] == {"role": "user", "content": [text("go", cache_control=MARK)]}


def test_before_the_first_answer_the_mark_stands_on_the_last_block() -> None:
    assert marks(body_of(user("go"))["messages"][0]) == 1


def test_a_conversation_that_begins_with_a_signed_summary_is_marked_at_its_end() -> None:
    summary = {"type": "compaction", "content": "what was", "signature": "SIG"}
    body = body_of(assistant(summary, text("so"), thinking()))
    assert body["messages"][0]["content"] == [summary, text("so", cache_control=MARK), thinking()]


def test_where_a_summary_of_the_apis_own_would_hide_ours_nothing_is_shared() -> None:
    """An unsigned one stands where it is, and the API forgets whatever is before it."""
    block = {"type": "compaction", "content": "what was", "encrypted_content": "XYZ"}
    behind = (assistant(block, text("so")), user("go on"))
    assert body_of(user("go"), *behind)["messages"][1]["content"][0] == block
    with pytest.raises(PrefixNotShareable, match="behind one of ours"):
        body_of(user("Ours.", is_compact_summary=True), *behind)


def test_the_newest_marks_stay_and_four_are_never_passed() -> None:
    system = [text("a", cache_control=HOUR), text("b", cache_control=HOUR)]
    asked = [user(text(f"q{number}", cache_control=HOUR)) for number in range(4)]
    history = [message for question in asked for message in (question, assistant("answer"))]
    body = body_of(*history, user(text("new", cache_control=MARK)), session_system=system)
    assert body["system"] == system
    assert [marks(message) for message in body["messages"]] == [0, 0, 0, 0, 1, 0, 1, 0, 0, 0]
    assert body["messages"][6]["content"][0]["cache_control"] == MARK
    assert marks(body) == 4


def test_marks_of_tools_and_system_beyond_three_go() -> None:
    tools = [{**TOOLS[0], "name": f"T{number}", "cache_control": MARK} for number in range(2)]
    system = [text(f"s{number}", cache_control=MARK) for number in range(3)]
    body = body_of(user(text("q", cache_control=MARK)), assistant("a"), session_tools=tools, session_system=system)
    assert [marks(tool) for tool in body["tools"]] == [1, 1]
    assert [marks(block) for block in body["system"]] == [1, 0, 0]
    assert marks(body) == 4


def test_marks_inside_results_go() -> None:
    inner = result("t1", [text("x", cache_control=MARK)])
    body = body_of(user("go"), assistant(use("t1")), user(inner), assistant("a"), user("b"), assistant("c"))
    assert body["messages"][2] == {"role": "user", "content": [result("t1", [text("x")])]}


def test_request_settings_pass_and_bookkeeping_does_not() -> None:
    settings_of_session = {
        "thinking": {"type": "adaptive"},
        "tool_choice": {"type": "auto"},
        "metadata": {"user_id": "u"},
        "effort": "medium",
        "betas": ["beta-1", 7, "beta-2"],
        "stop_sequences": ["STOP"],
        "cache_control": MARK,
        "compaction": {"type": "summarize"},
        "last_request_started_at": "2026-11-30T00:00:00Z",
        "speed": None,
    }
    encoded, betas = shared_prefix_body(request(*HISTORY, session_request=settings_of_session))
    body = json.loads(encoded)
    assert betas == ("beta-1", "beta-2")
    assert body["thinking"] == {"type": "adaptive"}
    assert body["output_config"] == {"effort": "medium"}
    assert set(body) == {
        "model", "max_tokens", "stream", "thinking", "tool_choice", "metadata", "output_config", "tools", "system",
        "messages",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"effort": "low", "output_config": {"format": {"type": "json_schema"}}},
         {"effort": "low", "format": {"type": "json_schema"}}),
        ({"effort": "low", "output_config": {"effort": "high"}}, {"effort": "high"}),
        ({"effort": 3, "output_config": {"effort": "high"}}, {"effort": "high"}),
        ({"effort": "low", "output_config": "odd"}, "odd"),
    ],
)  # fmt: skip
def test_effort_is_part_of_the_output_settings(given: dict[str, Any], wanted: Any) -> None:  # noqa: ANN401 - any JSON
    assert body_of(*HISTORY, session_request=given)["output_config"] == wanted


def test_a_session_without_system_tools_and_settings_has_none() -> None:
    body = body_of(*HISTORY, session_system=None, session_tools=[], session_request=None)
    assert set(body) == {"model", "max_tokens", "stream", "messages"}
    assert shared_prefix_body(request(*HISTORY, session_request={"betas": "odd"}))[1] == ()


@pytest.mark.parametrize(
    ("messages", "repair"),
    [
        ((), "no messages"),
        ((user("a\0b"), assistant("c")), "characters_replaced"),
        ((assistant("first"), user("b")), "opening_added"),
        ((user("go"), assistant(use("t1"))), "results_added"),
        ((user("go"), assistant(use("t1")), user("never mind")), "results_added"),
        ((user("go"), assistant(text("x", index=0))), "fields_dropped"),
        ((user("go"), assistant(thinking(signature=""), text("x"))), "thinking_blocks_dropped"),
    ],
)
def test_a_history_that_needs_repair_is_not_shared(messages: tuple[Message, ...], repair: str) -> None:
    with pytest.raises(PrefixNotShareable, match=repair):
        shared_prefix_body(request(*messages))


@pytest.mark.parametrize(
    "fields",
    [
        {"session_system": "nul \0"},
        {"session_request": {"tool_choice": {"type": "any"}}},
        {"session_request": {"tool_choice": {"type": "tool", "name": "Read"}}},
        {"session_request": {"thinking": {"type": "enabled", "budget_tokens": 20_000}}},
    ],
)
def test_a_session_that_leaves_no_way_to_a_summary_is_not_shared(fields: dict[str, Any]) -> None:
    with pytest.raises(PrefixNotShareable):
        shared_prefix_body(request(*HISTORY, **fields))


@settings(max_examples=150, deadline=None)
@given(histories())
def test_whatever_is_shared_is_valid_and_unchanged_but_for_marks(history: tuple[Message, ...]) -> None:
    try:
        messages = body_of(*history)["messages"]
    except PrefixNotShareable:
        return
    allowed = {"thinking was kept, though something before it may have changed"}
    assert set(broken_rules(messages)) <= allowed
    assert [block for message in messages[:-1] for block in _blocks(unmarked(message["content"]))] == [
        unmarked(block) for turn in merge(history) for block in _blocks(turn["content"])
    ]
    assert marks(messages) >= 1


def _blocks(content: Any) -> Any:  # noqa: ANN401 - a content
    return [text(content)] if isinstance(content, str) else content
