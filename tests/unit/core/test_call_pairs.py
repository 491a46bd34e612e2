"""Pairs of client tools."""

from __future__ import annotations

from collections import Counter

from compaction.core.call_pairs import LOOSE_ERROR, LOOSE_RESULT, NO_RESULT, pair_calls
from compaction.core.tool_ids import ToolIds
from compaction.core.turns import Turn
from tests.unit.core.samples import Block, image, result, text, use


def turns_of(*contents: list[Block] | str) -> list[Turn]:
    """Turns in turn the assistant's and the user's."""
    return [{"role": ("assistant", "user")[number % 2], "content": content} for number, content in enumerate(contents)]


def paired(*contents: list[Block] | str, close_open: bool = False) -> tuple[list[list[Block] | str], dict[str, int]]:
    tally: Counter[str] = Counter()
    found = pair_calls(turns_of(*contents), ToolIds(()), tally, close_open=close_open)
    return [turn["content"] for turn in found], dict(+tally)


def missing(ident: str) -> Block:
    return result(ident, NO_RESULT, is_error=True)


def test_turns_that_are_fine_are_the_same_objects() -> None:
    turns = turns_of([text("a"), use("t1"), use("t2")], [result("t1"), result("t2"), text("b")], "done")
    found = pair_calls(turns, ToolIds(()), Counter(), close_open=True)
    assert all(one is two for one, two in zip(found, turns, strict=True))


def test_results_in_another_order_than_the_calls_are_fine() -> None:
    contents = ([use("t1"), use("t2")], [result("t2"), result("t1")])
    assert paired(*contents) == (list(contents), {})


def test_a_call_without_result_gets_one_that_says_so() -> None:
    (_, answers, _), repairs = paired([use("t1"), use("t2")], [result("t2")], [text("on")])
    assert answers == [result("t2"), missing("t1")]
    assert repairs == {"results_added": 1}


def test_a_call_before_words_of_the_user_is_closed() -> None:
    (_, answers), repairs = paired([use("t1")], "never mind")
    assert answers == [missing("t1"), text("never mind")]
    assert repairs == {"results_added": 1}


def test_calls_at_the_end_stay_open() -> None:
    assert paired([use("t1")]) == ([[use("t1")]], {})
    assert paired([use("t1"), use("t2")], [result("t1")]) == ([[use("t1"), use("t2")], [result("t1")]], {})


def test_calls_at_the_end_are_closed_on_demand() -> None:
    assert paired([use("t1")], close_open=True) == ([[use("t1")], [missing("t1")]], {"results_added": 1})
    (_, answers), _ = paired([use("t1"), use("t2")], [result("t1")], close_open=True)
    assert answers == [result("t1"), missing("t2")]


def test_results_come_before_everything_else() -> None:
    (_, answers), repairs = paired([use("t1")], [text("remark"), result("t1"), image()])
    assert answers == [result("t1"), text("remark"), image()]
    assert repairs == {"results_moved": 1}


def test_a_result_without_call_becomes_text_and_keeps_its_media() -> None:
    (_, answers), repairs = paired([text("a")], [result("gone", [text("one"), image(), text("two")]), text("b")])
    assert answers == [text(f"{LOOSE_RESULT}\none\ntwo"), image(), text("b")]
    assert repairs == {"loose_results_turned_to_text": 1}


def test_an_error_without_call_says_that_it_is_one() -> None:
    (_, answers), _ = paired([text("a")], [result("gone", "boom", is_error=True), result("gone", [image()])])
    assert answers == [text(f"{LOOSE_ERROR}\nboom"), text(LOOSE_RESULT), image()]


def test_a_result_without_call_and_content_goes() -> None:
    (_, answers, _), repairs = paired([text("a")], [{"type": "tool_result", "tool_use_id": "gone"}], [text("b")])
    assert answers == []
    assert repairs == {"loose_results_dropped": 1}


def test_a_second_result_of_one_call_becomes_text() -> None:
    (_, answers), _ = paired([use("t1")], [result("t1", "first"), result("t1", "second")])
    assert answers == [result("t1", "first"), text(f"{LOOSE_RESULT}\nsecond")]


def test_a_late_result_becomes_text_where_it_stands() -> None:
    (_, first, _, second), _ = paired([use("job")], [result("job", "pending")], [text("so?")], [result("job", "done")])
    assert first == [result("job", "pending")]
    assert second == [text(f"{LOOSE_RESULT}\ndone")]


def test_reused_ids_are_renamed_and_paired_by_order() -> None:
    (one, first, two, second), repairs = paired(
        [use("c"), use("c")], [result("c", "1"), result("c", "2")], [use("c")], [result("c", "3")]
    )
    assert (one, two) == ([use("c"), use("c_2")], [use("c_3")])
    assert first == [result("c", "1"), result("c_2", "2")]
    assert second == [result("c_3", "3")]
    assert repairs == {"tool_ids_renamed": 2}


def test_a_result_may_name_the_id_that_we_sent() -> None:
    (_, _, _, second), _ = paired([use("c")], [result("c")], [use("c")], [result("c_2", "by the sent id")])
    assert second == [result("c_2", "by the sent id")]
    (one, first), _ = paired([use("c"), use("c")], [result("c_2", "b"), result("c", "a"), result("c", "loose")])
    assert one == [use("c"), use("c_2")]
    assert first == [result("c_2", "b"), result("c", "a"), text(f"{LOOSE_RESULT}\nloose")]


def test_ids_that_are_no_valid_strings_pair_too() -> None:
    (one, first), _ = paired(
        [use("a.b"), use(7), use(None)], [result(7, "seven"), result("a.b", "ab"), result(None, "none")]
    )
    assert [block["id"] for block in one if isinstance(block, dict)] == ["a_b_2", "7", "null"]
    assert first == [result("7", "seven"), result("a_b_2", "ab"), result("null", "none")]
