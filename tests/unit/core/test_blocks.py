"""One block made sendable."""

from __future__ import annotations

import copy
import json
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings

from compaction.core.blocks import tidy, without_marks
from tests.unit.core import strategies
from tests.unit.core.rules import ALLOWED
from tests.unit.core.samples import MARK, Block, image, result, text, thinking, use

CITATION = {"type": "char_location", "cited_text": "x", "document_index": 0, "file_id": "f"}


def sent(block: Block, role: str = "assistant", **options: bool) -> tuple[Block | None, dict[str, int]]:
    tally: Counter[str] = Counter()
    tidied = tidy(block, role, tally, **options)
    return tidied, {kind: count for kind, count in tally.items() if count}


@pytest.mark.parametrize(
    ("block", "role"),
    [
        (text("hi"), "user"),
        (text("naïve 检查"), "assistant"),
        (text("cited", citations=[{"type": "char_location", "cited_text": "x"}]), "assistant"),
        (text("not cited", citations=[]), "user"),
        (use("t1", "Read", {"path": "a", "n": [1, {"deep": None}]}), "assistant"),
        (use("t1", caller={"type": "direct"}), "assistant"),
        (use("t1", inputs={"cache_control": {"type": "ephemeral"}}), "assistant"),
        (result("t1"), "user"),
        (result("t1", "", is_error=False), "user"),
        (result("t1", [text("a"), image()], is_error=False), "user"),
        ({"type": "tool_result", "tool_use_id": "t1"}, "user"),
        (image(), "user"),
        ({"type": "hologram", "depth": None}, "assistant"),
        ({"type": "compaction", "content": None, "signature": "SIG"}, "assistant"),
        ({"type": "document", "source": {"type": "text", "data": "x"}, "title": None}, "user"),
    ],
)
def test_a_block_that_is_fine_is_the_same_object(block: Block, role: str) -> None:
    tidied, repairs = sent(block, role)
    assert tidied is block
    assert repairs == {}


@pytest.mark.parametrize(
    ("block", "role", "wanted", "repair"),
    [
        (text(""), "user", None, "blank_blocks_dropped"),
        (text(" \n\u00a0"), "user", None, "blank_blocks_dropped"),
        ({"type": "text"}, "user", None, "blank_blocks_dropped"),
        ({"type": "text", "text": {"a": 1}}, "user", text('{"a":1}'), "blocks_turned_to_text"),
        (text("a\0"), "user", text("a\ufffd"), "characters_replaced"),
        (text("x", cache_control=MARK), "user", text("x"), "cache_marks_dropped"),
        (text("x", index=0), "user", text("x"), "fields_dropped"),
        (text("x", citations=None), "user", text("x"), "fields_dropped"),
        (text("x", citations=[CITATION]), "user", text("x"), "citations_dropped"),
        (text("x", citations="odd"), "assistant", text("x"), "citations_dropped"),
        (text("x", citations=[CITATION, 3]), "assistant",
         text("x", citations=[{"type": "char_location", "cited_text": "x", "document_index": 0}]), "citations_dropped"),
        (thinking(), "assistant", None, "thinking_blocks_dropped"),
        ({"type": "redacted_thinking", "data": "X"}, "assistant", None, "thinking_blocks_dropped"),
        (image(), "assistant", text("[image omitted: image/png, 9 bytes]"), "blocks_turned_to_text"),
        ({"type": "image", "source": None}, "user", text("[image omitted]"), "media_replaced"),
        ({"type": "document", "source": {"type": "text", "data": "words"}}, "assistant", text("[document]\nwords"),
         "blocks_turned_to_text"),
        (use("t1", text=None, index=1), "assistant", use("t1"), "fields_dropped"),
        (use("t1", caller=None), "assistant", use("t1"), "fields_dropped"),
        (use("t1", caller="direct"), "assistant", use("t1"), "fields_dropped"),
        (use("t1", caller={"tool_id": 3}), "assistant", use("t1"), "fields_dropped"),
        ({"type": "web_search_tool_result", "tool_use_id": "s", "content": [], "caller": "direct"}, "assistant",
         {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}, "fields_dropped"),
        (use("t1", ""), "assistant", use("t1", "unknown_tool"), "names_replaced"),
        (use("t1", None), "assistant", use("t1", "unknown_tool"), "names_replaced"),
        (use("t1", "functions.Bash"), "assistant", use("t1", "functions_Bash"), "names_replaced"),
        (use("t1", "n" * 200), "assistant", use("t1", "n" * 128), "names_replaced"),
        (use("t1", inputs="raw"), "assistant", use("t1", inputs={"value": "raw"}), "inputs_wrapped"),
        ({"type": "tool_use", "id": "t1", "name": "Read"}, "assistant", use("t1"), "inputs_wrapped"),
        (use("t1", inputs={"v": math.nan}), "assistant", use("t1", inputs={"v": None}), "numbers_replaced"),
        (use("t1"), "user", text("[Tool call Read] {}"), "blocks_turned_to_text"),
        (result("t1"), "assistant", text("[tool result] ok"), "blocks_turned_to_text"),
        (result("t1", ""), "assistant", None, "blocks_turned_to_text"),
        (result("t1", name="Read"), "user", result("t1"), "fields_dropped"),
        (result("t1", is_error=None), "user", result("t1"), "fields_dropped"),
        (result("t1", is_error=1), "user", result("t1", is_error=True), "results_rewritten"),
        (result("t1", "\n"), "user", {"type": "tool_result", "tool_use_id": "t1"}, "results_rewritten"),
        (result("t1", None), "user", {"type": "tool_result", "tool_use_id": "t1"}, "results_rewritten"),
        (result("t1", []), "user", {"type": "tool_result", "tool_use_id": "t1"}, "results_rewritten"),
        (result("t1", "", is_error=True), "user", result("t1", "(no output)", is_error=True), "results_rewritten"),
        (result("t1", " ", is_error=True), "user", result("t1", "(no output)", is_error=True), "results_rewritten"),
        (result("t1", text("a")), "user", result("t1", [text("a")]), "results_rewritten"),
        (result("t1", 7), "user", result("t1", [text("7")]), "results_rewritten"),
        (result("t1", ["a", {"text": "b"}, {"k": 1}]), "user", result("t1", [text("a"), text("b"), text('{"k":1}')]),
         "results_rewritten"),
        ({"type": "advisor_tool_result", "tool_use_id": "s", "content": "c"}, "user", text("[advisor tool result] c"),
         "blocks_turned_to_text"),
        ({"type": "compaction", "content": " "}, "assistant", None, "blank_blocks_dropped"),
        ({"type": "hologram", "cache_control": MARK}, "user", {"type": "hologram"}, "cache_marks_dropped"),
    ],
)  # fmt: skip
def test_one_repair_at_a_time(block: Block, role: str, wanted: Block | None, repair: str) -> None:
    tidied, repairs = sent(block, role)
    assert tidied == wanted
    assert repairs[repair] >= 1


def test_blocks_inside_a_result_are_repaired_too() -> None:
    inner: list[Any] = [
        text(""), text("a", index=3), thinking(), use("t2"), image(), {"type": "image"}, result("t3", "nested"),
        {"type": "x_tool_result", "content": "odd"}, {"type": "tool_reference", "tool_name": "Read"},
        {"type": "hologram"}, text("b", cache_control=MARK),
    ]  # fmt: skip
    tidied, repairs = sent(result("t1", inner), "user")
    assert tidied == result(
        "t1",
        [
            text("a"), text("[Tool call Read] {}"), image(), text("[image omitted]"), text("[tool result] nested"),
            text("[x tool result] odd"), {"type": "tool_reference", "tool_name": "Read"}, {"type": "hologram"},
            text("b"),
        ],
    )  # fmt: skip
    assert repairs["thinking_blocks_dropped"] == 1
    assert repairs["blank_blocks_dropped"] == 1


def test_a_mark_goes_and_a_key_of_that_name_in_a_tools_input_stays() -> None:
    block = use("t1", inputs={"cache_control": {"type": "ephemeral"}, "v": "a\0"}, cache_control=MARK)
    tidied, repairs = sent(block)
    assert tidied == use("t1", inputs={"cache_control": {"type": "ephemeral"}, "v": "a\ufffd"})
    assert repairs == {"cache_marks_dropped": 1, "characters_replaced": 1}


def test_a_faithful_look_keeps_signed_thinking_and_marks() -> None:
    for block in (thinking(), {"type": "redacted_thinking", "data": "X"}, text("x", cache_control=MARK)):
        assert sent(block, faithful=True) == (block, {})
    for block in (
        thinking(signature=""),
        {"type": "redacted_thinking"},
        {"type": "thinking", "thinking": "x", "signature": 3},
    ):
        assert sent(block, faithful=True) == (None, {"thinking_blocks_dropped": 1})
    assert sent(thinking(), "user", faithful=True) == (None, {"thinking_blocks_dropped": 1})


def test_thinking_with_a_bad_character_is_no_longer_what_was_signed() -> None:
    tidied, repairs = sent(thinking("cut \ud83d"), faithful=True)
    assert repairs["characters_replaced"] == 1
    assert tidied != thinking("cut \ud83d")


def test_marks_can_be_taken_from_a_block_alone() -> None:
    assert without_marks(result("t1", [text("a", cache_control=MARK)], cache_control=MARK)) == result("t1", [text("a")])


@settings(max_examples=150, deadline=None)
@given(strategies.any_blocks)
def test_tidying_is_idempotent_and_changes_nothing_in_place(block: Block) -> None:
    before = copy.deepcopy(block)
    for role in ("user", "assistant"):
        once = tidy(block, role, Counter())
        assert json.dumps(block) == json.dumps(before)
        if once is not None:
            tally: Counter[str] = Counter()
            assert tidy(once, role, tally) is once
            assert not +tally
            assert set(once) <= ALLOWED.get(once["type"], set(once))
