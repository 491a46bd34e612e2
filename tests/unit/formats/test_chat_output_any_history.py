"""Whatever a producer stored, the chat that we give is one that OpenAI takes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import wire
from compaction.core.messages import Message
from compaction.formats.chat_output import chat_messages
from tests.unit.core.strategies import clean_sessions, histories
from tests.unit.formats.chat_rules import Json, broken_rules

NEXT = {"role": "user", "content": "And now?"}


@settings(max_examples=300, deadline=None)
@given(histories(), st.sampled_from([None, "Be kind.", [{"type": "text", "text": "Be kind."}]]))
def test_any_history_is_a_valid_chat(history: tuple[Message, ...], system: Json) -> None:
    assert broken_rules(chat_messages(wire.api_messages(history), system)) == []


@settings(max_examples=200, deadline=None)
@given(histories())
def test_with_calls_closed_the_user_goes_on(history: tuple[Message, ...]) -> None:
    assert broken_rules([*chat_messages(wire.api_messages(history, close_open=True)), NEXT]) == []


@settings(max_examples=100, deadline=None)
@given(clean_sessions())
def test_every_call_and_every_result_is_still_there(history: tuple[Message, ...]) -> None:
    turns = wire.api_messages(history)
    blocks = [block for turn in turns if isinstance(turn["content"], list) for block in turn["content"]]
    chat = chat_messages(turns)
    asked = [call["id"] for message in chat for call in message.get("tool_calls", ())]
    assert asked == [block["id"] for block in blocks if block["type"] == "tool_use"]
    answered = [message["tool_call_id"] for message in chat if message["role"] == "tool"]
    assert answered == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        ([{"role": "tool", "tool_call_id": "c", "content": "x"}], "an answer to no call that waits"),
        ([{"role": "user", "content": ""}], "an empty message of the user"),
        ([NEXT, {"role": "system", "content": "Late."}], "the system prompt stands first"),
        ([{"role": "assistant", "content": None}], "a message of the assistant without content"),
        ([{"role": "user", "content": [{"type": "image", "source": {}}]}], "a part of the type image"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:text/html;base64,aGk="}}]}],
            "an image is no address and no data of a known kind",
        ),
    ],
)
def test_the_rules_notice_what_breaks_them(broken: Json, rule: str) -> None:
    assert broken_rules(broken) == [rule]


def test_the_rules_of_pairs_notice_what_breaks_them() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asking = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = {"role": "tool", "tool_call_id": "c", "content": ""}
    assert broken_rules([asking]) == broken_rules([asking, answer]) == []
    assert broken_rules([asking, NEXT]) == ["somebody speaks before the calls are answered"]
    assert broken_rules([asking, answer, answer]) == ["an answer to no call that waits"]
    assert broken_rules([asking, answer, asking]) == ["the id of a call is missing or used twice"]
    bad = json.loads(json.dumps(asking).replace('"{}"', '"{"'))
    assert broken_rules([bad]) == ["the arguments are no JSON"]
