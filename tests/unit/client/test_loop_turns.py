from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message, TextBlock, ToolUseBlock, Usage

from compaction.client import loop_turns
from compaction.client.hashing import prefix_hashes

REPLY = Message(
    id="msg_1",
    type="message",
    role="assistant",
    model="claude-haiku-4-5",
    content=[TextBlock(type="text", text="hm"), ToolUseBlock(type="tool_use", id="toolu_1", name="Read", input={})],
    usage=Usage(input_tokens=7, output_tokens=3),
)


def test_the_sdks_objects_are_the_blocks_that_they_stand_for() -> None:
    [turn] = loop_turns.turns([{"role": "assistant", "content": REPLY.content}])
    assert turn["content"] == [
        {"type": "text", "text": "hm"},
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}},
    ]


def test_cache_marks_do_not_count_wherever_they_stand() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    text: dict[str, Any] = {"type": "text", "text": "x"}

    def held(extra: dict[str, Any]) -> list[dict[str, Any]]:
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [text | extra], **extra}
        return [{"role": "user", "content": [text | extra, result]}]

    assert loop_turns.turns(held(mark)) == held({})
    marked = held(mark)
    loop_turns.turns(marked)
    assert marked == held(mark)  # the loop's own list is left alone


def test_a_tools_input_may_be_called_anything() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Plan", "input": {"cache_control": 1}}
    assert loop_turns.turns([{"role": "assistant", "content": [call]}])[0]["content"] == [call]


def test_a_response_tells_its_id_model_and_usage() -> None:
    fields = loop_turns.response_fields(REPLY)
    assert (fields["api_message_id"], fields["model"]) == ("msg_1", "claude-haiku-4-5")
    assert fields["usage"]["input_tokens"] == 7
    assert loop_turns.response_fields({"id": "msg_2", "usage": None}) == {"api_message_id": "msg_2"}
    assert loop_turns.response_fields(None) == {}


@pytest.mark.parametrize("message", [{"role": "system", "content": "x"}, {"role": "user"}, {"content": "x"}])
def test_what_is_no_message_is_refused_by_its_place(message: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"messages\[1\]"):
        loop_turns.turns([{"role": "user", "content": "fine"}, message])


def test_the_recipe_gives_the_hash_of_the_documents_example() -> None:
    """By hand, with printf and sha256sum; docs/api.md has the same."""
    held: list[dict[str, Any]] = [
        {"role": "user", "content": "Why does the build fail?"},
        {"role": "assistant", "content": [{"type": "text", "text": "A test is red: caf\u00e9."}]},
    ]
    assert prefix_hashes(held)[-1] == "c228956305fc8c3ba5a8401b8fa386996741d5ed36e71d1e01b1a0196c30b24a"


SUMMARY = [{"role": "user", "content": "A summary."}]
QUESTION = {"role": "user", "content": "Which port?"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "4711"}


@pytest.mark.parametrize(
    ("turns", "smaller", "lost"),
    [
        ([QUESTION, {"role": "assistant", "content": "4711."}], SUMMARY, []),
        ([{"role": "assistant", "content": "Yes?"}, QUESTION], SUMMARY, [QUESTION]),
        ([QUESTION, QUESTION | {"content": " "}], SUMMARY, [QUESTION]),
        ([QUESTION], [*SUMMARY, QUESTION], []),
        ([QUESTION], [{"role": "user", "content": [{"type": "text", "text": "Which port?"}]}], []),
        ([{"role": "user", "content": [RESULT]}], SUMMARY, []),
        (
            [{"role": "user", "content": [RESULT, IMAGE, {"type": "text", "text": "And this?"}]}],
            SUMMARY,
            [{"role": "user", "content": [IMAGE, {"type": "text", "text": "And this?"}]}],
        ),
        ([], SUMMARY, []),
    ],
    ids=["answered", "asked", "blank", "kept", "merged", "tool", "beside a tool's result", "nothing"],
)
def test_what_no_answer_follows_yet_is_found_where_a_smaller_list_lost_it(
    turns: list[dict[str, Any]], smaller: list[dict[str, Any]], lost: list[dict[str, Any]]
) -> None:
    assert loop_turns.unanswered(turns, smaller) == lost
