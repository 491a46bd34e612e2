"""Cuts in place: what goes, what stays, and that nothing else changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import jsonbytes
from compaction.core.messages import Message
from compaction.core.shortening import MAX_DEPTH, MIN_TEXT_CHARS, Shortened, middle_cut, shortened, without_media


def characters(message: Message) -> int:
    """A measure that can be checked by hand: the characters of the content as JSON."""
    return len(jsonbytes.encode(message.content).decode())


def user(content: Any) -> Message:  # noqa: ANN401 - a string or blocks
    return Message(role="user", content=content)


def result(text: Any, number: int = 1) -> Message:  # noqa: ANN401 - a string or blocks
    return user([{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}])


def call(value: Any) -> Message:  # noqa: ANN401 - a tool's input is any JSON
    return Message(role="assistant", content=[{"type": "tool_use", "id": "toolu_1", "name": "Write", "input": value}])


# ---------------------------------------------------------------------------------------------------------- one text


def test_the_middle_goes_and_the_marker_counts_it() -> None:
    text = "H" * 60 + "M" * 900 + "T" * 40
    assert middle_cut(text, 100) == "H" * 60 + "\n[… 900 characters left out …]\n" + "T" * 40


def test_a_second_cut_counts_what_the_first_one_took() -> None:
    once = middle_cut("H" * 600 + "M" * 9_000 + "T" * 400, 1_000)
    assert middle_cut(once, 100) == "H" * 60 + "\n[… 9900 characters left out …]\n" + "T" * 40


@pytest.mark.parametrize("keep", [0, 10, 90, 99, 100, 1_000])
def test_a_text_that_would_not_get_shorter_stays(keep: int) -> None:
    text = "x" * 100
    assert len(middle_cut(text, keep)) <= 100
    assert middle_cut(text, 90) == text  # ten characters would be traded for a marker of thirty


@pytest.mark.parametrize(
    "whole",
    [
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",  # a family of four, joined
        "e\u0301",  # an e with an accent of its own
        "\U0001f44d\U0001f3fd",  # a thumb with a skin tone
        "\u2764\ufe0f",  # a heart with a variation selector
        "\U0001f1e9\U0001f1ea",  # a flag
        "\ud83d\ude00",  # an emoji that came as two halves
        "\u0e01\u0e49",  # Thai with a tone mark
    ],
    ids=["family", "accent", "skin tone", "heart", "flag", "halves", "thai"],
)
@pytest.mark.parametrize("shift", range(8))
def test_no_visible_character_is_cut_in_two(whole: str, shift: int) -> None:
    text = "x" * (60 - shift) + whole + "." * 900 + whole + "x" * (40 - shift)
    head, _, rest = middle_cut(text, 100).partition("\n[… ")
    tail = rest.partition(" …]\n")[2]
    assert whole in head or whole[0] not in head
    assert whole in tail or whole[-1] not in tail


def test_a_run_of_marks_without_end_is_cut_somewhere() -> None:
    assert len(middle_cut("a" + "\u0301" * 10_000, 100)) < 300


@settings(deadline=None)  # shared machines stall
@given(st.text(min_size=0, max_size=600), st.integers(0, 700))
def test_a_cut_keeps_both_ends_and_the_count_is_exact(text: str, keep: int) -> None:
    cut = middle_cut(text, keep)
    if cut == text:
        return
    head, _, rest = cut.partition("\n[… ")
    missing, _, tail = rest.partition(" characters left out …]\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + int(missing) + len(tail) == len(text)
    assert len(cut) < len(text)


# ------------------------------------------------------------------------------------------------------------- media


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * 400}}
PDF = {
    "type": "document",
    "title": "contract.pdf",
    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
}


def test_media_become_markers_also_inside_results() -> None:
    messages = (
        user("plain"),
        user([{"type": "text", "text": "Look:"}, IMAGE, PDF]),
        result([{"type": "text", "text": "shot"}, IMAGE]),
        result(["odd", 5, None, {"content": [IMAGE]}]),
    )
    before = copy.deepcopy(messages)
    lighter, count = without_media(messages)
    assert count == 4
    assert messages == before
    assert lighter[0] is messages[0]
    assert [block["type"] for block in lighter[1].blocks()] == ["text", "text", "text"]
    assert "contract.pdf" in lighter[1].blocks()[2]["text"]
    assert "iVBOR" not in jsonbytes.encode([message.content for message in lighter]).decode()
    assert lighter[2].blocks()[0]["tool_use_id"] == "toolu_1"


def test_messages_without_media_are_the_same_objects() -> None:
    messages = (user("plain"), result("text"), call({"type": "image"}))
    lighter, count = without_media(messages)
    assert count == 0
    assert all(one is other for one, other in zip(messages, lighter, strict=True))


def test_media_nested_too_deep_stay() -> None:
    content: Any = [IMAGE]
    for _ in range(MAX_DEPTH):
        content = [{"type": "tool_result", "tool_use_id": "t", "content": content}]
    assert without_media([user(content)])[1] == 0


# ---------------------------------------------------------------------------------------------------------- messages


def test_nothing_to_save_changes_nothing() -> None:
    messages = (user("x" * 5_000), result("y" * 5_000))
    assert shortened(messages, 0, characters) == Shortened(messages)


def test_the_largest_results_lose_most_and_modest_ones_nothing() -> None:
    messages = (result("a" * 9_000, 1), result("b" * 6_000, 2), result("c" * 1_000, 3), user("d" * 900))
    cut = shortened(messages, 9_000, characters)
    sizes = [characters(message) for message in cut.messages]
    assert cut.changed == 2
    assert cut.messages[2] is messages[2]
    assert cut.messages[3] is messages[3]
    assert abs(sizes[0] - sizes[1]) < 100  # both came down to one size
    assert sum(map(characters, messages)) - sum(sizes) >= 9_000
    assert sum(sizes) > 7_000  # and not much more than asked went
    assert cut.characters >= 9_000


@pytest.mark.parametrize(
    ("messages", "order"),
    [
        ((user("u" * 5_000), result("r" * 5_000)), [1, 0]),
        ((user("u" * 5_000), Message(role="assistant", content="a" * 5_000)), [1, 0]),
        ((Message(role="user", content="s" * 5_000, is_compact_summary=True), user("u" * 5_000)), [1, 0]),
        ((Message(role="assistant", content="a" * 5_000), result("r" * 5_000)), [1, 0]),
        ((call({"file": "w" * 5_000}), user([{"type": "text", "text": "u" * 5_000}])), [0, 1]),
    ],
    ids=[
        "result before user",
        "assistant before user",
        "user before summary",
        "result before assistant",
        "call before user",
    ],
)
def test_what_the_user_said_goes_late_and_an_earlier_summary_last(
    messages: tuple[Message, ...], order: list[int]
) -> None:
    first, second = order
    some = shortened(messages, 3_000, characters)
    assert some.messages[first] is not messages[first]
    assert some.messages[second] is messages[second]
    much = shortened(messages, 8_000, characters)
    assert much.messages[second] is not messages[second]


def test_one_call_with_many_short_strings_is_cut_as_one_text() -> None:
    many = call({"todos": [f"item number {number}" for number in range(2_000)]})
    cut = shortened((many,), 20_000, characters)
    assert characters(many) - characters(cut.messages[0]) >= 20_000
    block = cut.messages[0].blocks()[0]
    assert (block["type"], block["id"], block["name"], list(block["input"])) == (
        "tool_use",
        "toolu_1",
        "Write",
        ["shortened"],
    )


def test_a_result_of_many_short_blocks_is_cut_as_one_text() -> None:
    many = result([{"type": "text", "text": f"row {number}"} for number in range(2_000)])
    cut = shortened((many,), 40_000, characters)
    assert characters(many) - characters(cut.messages[0]) >= 40_000
    assert cut.messages[0].blocks()[0]["tool_use_id"] == "toolu_1"
    assert isinstance(cut.messages[0].blocks()[0]["content"], str)


def test_a_large_block_of_an_unknown_type_becomes_text() -> None:
    strange = Message(role="assistant", content=[{"type": "hologram", "points": list(range(5_000))}])
    cut = shortened((strange,), 15_000, characters)
    assert characters(strange) - characters(cut.messages[0]) >= 15_000
    assert cut.messages[0].blocks()[0]["type"] == "text"


def test_what_must_not_change_does_not() -> None:
    thinking = {"type": "thinking", "thinking": "t" * 9_000, "signature": "s" * 9_000}
    messages = (
        Message(role="assistant", content=[thinking, {"type": "redacted_thinking", "data": "d" * 9_000}]),
        user([IMAGE, {"type": "image", "source": {"type": "url", "url": "u" * 900}}]),
        Message(role="assistant", content=[{"type": "tool_use", "id": "i" * 300, "name": "n" * 300, "input": None}]),
        user([{"type": "tool_result", "tool_use_id": "i" * 300, "content": "short"}]),
    )
    assert shortened(messages, 10**6, characters) == Shortened(messages)


def test_strings_of_a_tools_input_may_have_any_name() -> None:
    message = call({"name": "n" * 5_000, "data": {"type": "base64", "data": "d" * 5_000}})
    cut = shortened((message,), 9_000, characters)
    value = cut.messages[0].blocks()[0]["input"]
    assert len(value["name"]) < 1_000
    assert len(value["data"]["data"]) < 1_000
    assert value["data"]["type"] == "base64"


def test_a_value_nested_too_deep_is_cut_as_one_text() -> None:
    value: Any = "x" * 5_000
    for _ in range(MAX_DEPTH + 5):
        value = [{"a": value}]
    cut = shortened((call(value),), 4_000, characters)
    assert characters(cut.messages[0]) < 2_000


def test_inputs_stay_as_they_are() -> None:
    messages = (
        user("u" * 5_000),
        call({"a": ["b" * 5_000, {"c": "d" * 5_000}], "e": list(range(3_000))}),
        result("r" * 5_000),
    )
    before = copy.deepcopy(messages)
    shortened(messages, 10**6, characters)
    assert messages == before


def test_uneven_text_is_measured_again() -> None:
    """Half of this text weighs four times as much as the other: the first guess is too low."""

    def weight(message: Message) -> int:
        text = message.content if isinstance(message.content, str) else ""
        return len(text) + 3 * text.count("字")

    messages = (user("字" * 5_000 + "a" * 5_000),)  # 25,000
    cut = shortened(messages, 20_000, weight)
    assert sum(map(weight, cut.messages)) <= 5_000


@settings(deadline=None)  # shared machines stall
@given(st.lists(st.sampled_from("urac"), min_size=1, max_size=8), st.integers(1, 30_000), st.randoms())
def test_what_can_be_saved_is_saved_and_no_message_goes(kinds: list[str], excess: int, random: Any) -> None:  # noqa: ANN401 - hypothesis's own
    make = {
        "u": lambda size: user("u" * size),
        "r": lambda size: result("r" * size),
        "a": lambda size: Message(role="assistant", content=[{"type": "text", "text": "a" * size}]),
        "c": lambda size: call({"text": "c" * size}),
    }
    messages = tuple(make[kind](random.randrange(6_000)) for kind in kinds)
    cut = shortened(messages, excess, characters)
    assert len(cut.messages) == len(messages)
    saved = sum(map(characters, messages)) - sum(map(characters, cut.messages))
    least = sum(min(characters(message), MIN_TEXT_CHARS + 80) for message in messages)  # 80: what stands around a text
    assert saved >= min(excess, sum(map(characters, messages)) - least)
