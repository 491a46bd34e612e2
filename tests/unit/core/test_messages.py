"""Messages: what a body must be, what it may leave out, and the way back to bytes."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from compaction.core import jsonbytes, messages
from compaction.core.messages import Message, MessageProblem, Usage, decode_message, envelope, message_from, usage_from


def nested(levels: int) -> Any:  # noqa: ANN401 - any JSON
    value: Any = "leaf"
    for _ in range(levels):
        value = {"n": value}
    return value


def test_a_body_with_every_field_is_read() -> None:
    body = {
        "role": "assistant",
        "content": [{"type": "text", "text": "hi"}],
        "uuid": "u-1",
        "parent_uuid": "u-0",
        "api_message_id": "msg_1",
        "created_at": "2026-11-30T12:00:00Z",
        "model": "claude-haiku-4-5",
        "usage": {
            "input_tokens": 1,
            "output_tokens": 2,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 4,
        },
        "is_meta": True,
        "is_sidechain": True,
        "partial": True,
        "is_compact_summary": True,
        "metadata": {"k": 1},
    }
    message = decode_message(jsonbytes.encode(body), seq=7)
    assert message.seq == 7
    assert message.usage == Usage(1, 2, 3, 4)
    assert envelope(message) == body
    assert jsonbytes.decode(messages.encode_message(message)) == body


def test_an_envelope_leaves_out_what_says_nothing() -> None:
    message = message_from({"role": "user", "content": "hi", "is_meta": False, "uuid": None, "unknown": 1})
    assert envelope(message) == {"role": "user", "content": "hi"}
    assert message.blocks() == [{"type": "text", "text": "hi"}]
    assert envelope(Message(role="user", content="hi")) == {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], "message"),
        ({"content": "x"}, "role"),
        ({"role": "tool", "content": "x"}, "role"),
        ({"role": {}, "content": "x"}, "role"),
        ({"role": ["user"], "content": "x"}, "role"),
        ({"role": "user"}, "content"),
        ({"role": "user", "content": 3}, "content"),
        ({"role": "user", "content": ["x"]}, "content[0]"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"text": "b"}]}, "content[1]"),
        ({"role": "user", "content": "x", "metadata": []}, "metadata"),
        ({"role": "user", "content": "x", "uuid": "with space"}, "uuid"),
        ({"role": "user", "content": "x", "uuid": "u" * 201}, "uuid"),
        ({"role": "user", "content": "x", "parent_uuid": 3}, "parent_uuid"),
        ({"role": "user", "content": "x", "is_meta": "yes"}, "is_meta"),
        ({"role": "user", "content": "x", "usage": []}, "usage"),
        ({"role": "user", "content": "x", "usage": {"input_tokens": -1}}, "usage.input_tokens"),
        ({"role": "user", "content": "x", "usage": {"output_tokens": True}}, "usage.output_tokens"),
        ({"role": "user", "content": "x", "usage": {"output_tokens": 1.5}}, "usage.output_tokens"),
        ({"role": "user", "content": [{"type": "tool_use", "input": nested(400)}]}, "message"),
    ],
)
def test_a_problem_names_the_field_and_quotes_nothing(body: Any, field: str) -> None:  # noqa: ANN401 - any JSON
    with pytest.raises(MessageProblem) as caught:
        message_from(body)
    assert caught.value.field == field
    assert "with space" not in str(caught.value)


def test_a_body_that_is_no_json_is_a_problem_of_the_message() -> None:
    with pytest.raises(MessageProblem, match=r"^message: the JSON breaks at character 0"):
        decode_message(b"secret")


def test_deep_nesting_below_the_limit_passes_every_encoder() -> None:
    message = message_from({"role": "user", "content": [{"type": "hologram", "data": nested(396)}]})
    assert jsonbytes.decode(messages.encode_message(message))["role"] == "user"
    assert jsonbytes.canonical(message.content)


def test_missing_and_null_usage_numbers_count_as_zero() -> None:
    assert usage_from({"input_tokens": 5, "cache_read_input_tokens": None}) == Usage(input_tokens=5)
    assert usage_from(None) is None


def test_usage_adds_up() -> None:
    one, two = Usage(1, 10, 100, 1000), Usage(2, 20, 200, 2000)
    assert one.prompt_tokens == 1101
    assert one.total_tokens == 1111
    assert one.plus(two) == Usage(3, 30, 300, 3000)
    assert two.to_dict() == {
        "input_tokens": 2,
        "output_tokens": 20,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 2000,
    }


def test_only_what_the_model_sees_is_in_the_conversation() -> None:
    seen = Message(role="user", content="a")
    others = (
        Message(role="system", content=""),
        Message(role="assistant", content="b", is_sidechain=True),
        Message(role="assistant", content="c", partial=True),
    )
    assert messages.conversation((seen, *others)) == (seen,)


def test_a_boundary_is_a_system_message_of_its_kind() -> None:
    assert Message(role="system", content="", metadata={"kind": "compact_boundary"}).is_boundary
    assert not Message(role="system", content="", metadata={"kind": "note"}).is_boundary
    assert not Message(role="system", content="").is_boundary
    assert not Message(role="user", content="", metadata={"kind": "compact_boundary"}).is_boundary


def test_a_message_is_estimated_once_and_a_changed_copy_anew() -> None:
    asked: list[Message] = []

    def estimate(message: Message) -> int:
        asked.append(message)
        return len(message.content)

    message = Message(role="user", content="four")
    assert [message.estimated(estimate), message.estimated(estimate)] == [4, 4]
    assert replace(message, content="fifteen").estimated(estimate) == 7
    assert len(asked) == 2
    assert message == Message(role="user", content="four")


def test_a_rewritten_message_differs_in_content_and_parent_alone() -> None:
    whole = Message(
        role="assistant",
        content="before",
        seq=4,
        uuid="u-4",
        parent_uuid="u-3",
        api_message_id="msg_4",
        created_at="2026-11-30T12:00:00Z",
        model="claude-haiku-4-5",
        usage=Usage(1, 2, 3, 4),
        is_meta=True,
        is_sidechain=True,
        partial=True,
        is_compact_summary=True,
        metadata={"k": 1},
    )
    assert all(getattr(whole, one.name) for one in fields(Message) if one.init)  # no new field is forgotten here
    assert whole.rewritten("after", "u-2") == replace(whole, content="after", parent_uuid="u-2")


@pytest.mark.parametrize(
    ("body", "sound"),
    [
        (b'{"role":"user","content":"plain"}', True),
        ('{"role":"user","content":"caf\u00e9 \u2713 \U0001f642"}'.encode(), True),
        (rb'{"role":"user","content":"a pair \ud83d\ude42 and \u001b[0m"}', True),
        (rb'{"role":"user","content":"a path C:\\u0000"}', True),
        (rb'{"role":"user","content":"\u0000"}', False),
        (rb'{"role":"user","content":"half \ud83d"}', False),
        (b'{"role":"user","content":"half \xed\xa0\xbd"}', False),
        (rb'{"role":"user","content":[{"type":"tool_use","input":{"half \ud83d":1}}]}', False),
        (b'{"role":"user","content":[{"type":"tool_use","input":{"n":NaN}}]}', False),
        (b'{"role":"user","content":[{"type":"tool_use","input":{"n":1e999}}]}', False),
    ],
)
def test_a_message_knows_whether_its_texts_and_numbers_can_be_sent(body: bytes, sound: bool) -> None:
    message = decode_message(body)
    assert message.is_sound is sound
    assert Message(role="user", content=message.content).is_sound is sound


def test_a_body_that_is_nested_too_deep_is_refused_when_it_is_read() -> None:
    body = jsonbytes.encode({"role": "user", "content": [{"type": "tool_use", "input": nested(400)}]})
    with pytest.raises(MessageProblem, match="nested deeper than 400 levels"):
        decode_message(body)


def test_a_count_that_no_model_has_is_refused() -> None:
    """The sum of a job's calls must fit into 64 bits."""
    assert usage_from({"input_tokens": 10**12}) is not None
    with pytest.raises(MessageProblem, match=r"usage\.input_tokens"):
        usage_from({"input_tokens": 10**12 + 1})
