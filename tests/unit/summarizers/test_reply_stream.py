"""The reader of streamed replies, fed by hand."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.messages import Usage
from compaction.summarizers.reply_stream import MAX_EVENT_BYTES, ReplyReader


def event(kind: str, **body: Any) -> bytes:  # noqa: ANN401 - JSON
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **body})}\n\n".encode()


def delta(text: str, index: int = 0) -> bytes:
    return event("content_block_delta", index=index, delta={"type": "text_delta", "text": text})


START = event(
    "message_start",
    message={"model": "claude-x", "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}},
)
TEXT = event("content_block_start", index=0, content_block={"type": "text", "text": ""})
PING = event("ping")
END = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 42}) + event("message_stop")
REPLY = START + TEXT + PING + delta("one ") + delta("two 😀") + event("content_block_stop", index=0) + END


def read(*chunks: bytes, **limits: int) -> ReplyReader:
    reader = ReplyReader(**limits)
    for chunk in chunks:
        reader.feed(chunk)
    return reader


def test_a_reply_gives_its_text_usage_model_and_reason() -> None:
    reader = read(REPLY)
    assert reader.text == "one two 😀"
    assert reader.characters == 9
    assert reader.usage == Usage(10, 42, 5, 0)
    assert (reader.model, reader.stop_reason, reader.block_types) == ("claude-x", "end_turn", ["text"])
    assert reader.done
    assert reader.problem is None


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.integers(0, len(REPLY)), max_size=30))
def test_it_does_not_matter_where_the_network_cuts(cuts: list[int]) -> None:
    edges = sorted({0, len(REPLY), *cuts})
    reader = read(*(REPLY[start:stop] for start, stop in itertools.pairwise(edges)))
    assert (reader.text, reader.usage, reader.stop_reason) == ("one two 😀", Usage(10, 42, 5, 0), "end_turn")


@settings(deadline=None)
@given(st.sampled_from([b"\r\n", b"\r"]), st.integers(1, 7))
def test_line_ends_may_be_any_of_three_and_may_be_cut_in_two(end: bytes, size: int) -> None:
    wire = REPLY.replace(b"\n", end)
    reader = read(*(wire[at : at + size] for at in range(0, len(wire), size)))
    assert (reader.text, reader.stop_reason, reader.problem) == ("one two 😀", "end_turn", None)


def test_fields_may_come_in_any_order_without_space_over_several_lines_and_without_a_name() -> None:
    odd = (
        b': a comment\nid: 7\ndata:{"type":"content_block_delta",\ndata:"delta":{"type":"text_delta","text":"odd"}}\n\n'
    )
    assert read(START, TEXT, odd).text == "odd"


def test_thinking_and_tool_input_are_no_text_but_their_blocks_are_named() -> None:
    reader = read(
        START,
        event("content_block_start", index=0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
        event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm"}),
        event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "c2ln"}),
        event(
            "content_block_start", index=1, content_block={"type": "tool_use", "id": "t", "name": "Read", "input": {}}
        ),
        event("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": "{}"}),
        event("message_delta", delta={"stop_reason": "tool_use"}, usage={}),
    )
    assert (reader.text, reader.block_types, reader.stop_reason) == ("", ["thinking", "tool_use"], "tool_use")


def test_a_block_may_begin_with_text() -> None:
    start = event("content_block_start", index=0, content_block={"type": "text", "text": "Well, "})
    assert read(START, start, delta("yes")).text == "Well, yes"


def test_later_usage_replaces_earlier_and_leaves_what_it_does_not_name() -> None:
    more = event("message_delta", delta={"stop_reason": None}, usage={"output_tokens": 9, "input_tokens": None})
    assert read(START, more).usage == Usage(10, 9, 5, 0)


@pytest.mark.parametrize("named", [True, False])
def test_an_error_event_stops_the_reader_and_keeps_its_body_for_the_classifier(named: bool) -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}
    wire = b"data: " + json.dumps(body).encode() + b"\n\n"
    reader = read(START, TEXT, delta("half"), (b"event: error\n" if named else b"") + wire, delta("never"))
    assert (reader.problem, reader.error_body, reader.text) == ("error_event", body, "half")


def test_an_error_event_may_hold_plain_text() -> None:
    assert read(b"event: error\ndata: upstream died\n\n").error_body == b"upstream died"


def test_an_event_that_is_no_json_is_a_problem() -> None:
    assert read(START, b"event: content_block_delta\ndata: {half\n\n").problem == "malformed"


def test_an_event_of_an_unknown_kind_is_skipped_whatever_it_holds() -> None:
    reader = read(START, event("weather", delta=7, usage="none"), TEXT, delta("fine"))
    assert (reader.text, reader.problem) == ("fine", None)


def test_a_known_event_with_wrong_members_is_a_problem() -> None:
    assert read(event("message_delta", delta=7)).problem == "malformed"


def test_halves_of_a_character_are_joined_and_lone_halves_replaced() -> None:
    reader = read(START, TEXT, delta("a\ud83d"), delta("\ude00b"), delta("\udc00c"))
    assert reader.text == "a😀b\ufffdc"


def test_a_text_over_its_limit_stops_the_reader_and_counts_bytes() -> None:
    assert read(START, TEXT, delta("é" * 10), max_text_bytes=20).problem is None
    assert read(START, TEXT, delta("é" * 10), delta("x"), max_text_bytes=20).problem == "too_large"


def test_an_event_without_end_stops_the_reader() -> None:
    reader = read(START, *[b"x" * 65_536] * (MAX_EVENT_BYTES // 65_536 + 1))
    assert reader.problem == "too_large"


def test_the_last_event_counts_only_when_it_is_whole() -> None:
    assert read(REPLY[: -len(event("message_stop")) - 2]).stop_reason is None


def test_a_message_that_comes_whole_is_taken_as_well() -> None:
    reader = ReplyReader()
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "all at once"}]
    usage = {"input_tokens": 3, "output_tokens": 4}
    reader.take_message(
        {"type": "message", "model": "m", "content": content, "stop_reason": "max_tokens", "usage": usage}
    )
    assert (reader.text, reader.stop_reason, reader.usage) == ("all at once", "max_tokens", Usage(3, 4))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (None, "malformed"),
        ("text", "malformed"),
        ({"type": "message"}, "malformed"),
        ({"type": "completion", "content": []}, "malformed"),
        ({"type": "error", "error": {"type": "api_error"}}, "error_event"),
        ({"error": "x"}, "error_event"),
        ({"type": "message", "content": [7], "stop_reason": "end_turn"}, "malformed"),
    ],
)
def test_json_that_is_no_message_is_a_problem(body: Any, problem: str) -> None:  # noqa: ANN401 - JSON
    reader = ReplyReader()
    reader.take_message(body)
    assert reader.problem == problem


def test_a_count_that_no_model_has_is_cut() -> None:
    """A gateway may say anything; what is stored has 64 bits."""
    reader = ReplyReader()
    told = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 10**30, "output_tokens": -5}}}
    reader.feed(b"data: " + json.dumps(told).encode() + b"\n\n")
    assert (reader.usage.input_tokens, reader.usage.output_tokens) == (10**12, 0)
