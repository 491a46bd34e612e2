"""The repair of turns as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.core.repair import OPENING, repair
from compaction.core.turns import Turn
from tests.unit.core.samples import Block, result, text, thinking, use


def a(*blocks: Block) -> Turn:
    return {"role": "assistant", "content": list(blocks)}


def u(*blocks: Block) -> Turn:
    return {"role": "user", "content": list(blocks)}


def words(role: str, content: str) -> Turn:
    return {"role": role, "content": content}


def repaired(*turns: Turn, **options: Any) -> tuple[list[Turn], dict[str, int]]:  # noqa: ANN401 - the options of repair
    found, report = repair(turns, **options)
    return found, dict(report.counts)


def test_no_turns_need_no_repair() -> None:
    found, report = repair([])
    assert found == []
    assert report.total == 0


def test_valid_turns_come_out_as_the_same_objects() -> None:
    turns = [words("user", "go"), a(text("x"), use("t1")), u(result("t1"), text("y")), words("assistant", "end")]
    found, report = repair(turns)
    assert all(one is two for one, two in zip(found, turns, strict=True))
    assert report.counts == {}


def test_a_leading_answer_gets_a_user_turn_in_front() -> None:
    found, repairs = repaired(a(text("…and that was it")), u(text("good")))
    assert found == [words("user", OPENING), a(text("…and that was it")), u(text("good"))]
    assert repairs == {"opening_added": 1}


def test_empty_and_blank_turns_go_and_their_neighbours_join() -> None:
    found, repairs = repaired(
        words("user", "a"), a(text("")), words("user", " "), a(), words("user", "b"), a(thinking()), u(text("c"))
    )
    assert found == [u(text("a"), text("b"), text("c"))]
    assert repairs == {"blank_blocks_dropped": 2, "empty_turns_dropped": 4, "thinking_blocks_dropped": 1}


def test_a_call_and_its_result_meet_when_the_turns_between_are_empty() -> None:
    found, _ = repaired(words("user", "go"), a(use("t1")), words("user", ""), a(text("")), u(result("t1")))
    assert found == [words("user", "go"), a(use("t1")), u(result("t1"))]


def test_answers_join_when_nothing_is_left_of_the_turn_between() -> None:
    empty = {"type": "tool_result", "tool_use_id": "gone"}
    found, repairs = repaired(words("user", "go"), a(text("x")), u(empty), a(use("t1")), u(result("t1")))
    assert found == [words("user", "go"), a(text("x"), use("t1")), u(result("t1"))]
    assert repairs == {"loose_results_dropped": 1, "empty_turns_dropped": 1}


def test_strings_are_cleaned() -> None:
    found, repairs = repaired(words("user", "a\0b"))
    assert found == [words("user", "a\ufffdb")]
    assert repairs == {"characters_replaced": 1}


def test_neighbours_of_one_role_are_joined() -> None:
    found, _ = repaired(words("user", "a"), words("user", "b"))
    assert found == [u(text("a"), text("b"))]


def test_open_calls_wait_or_are_closed() -> None:
    turns = (words("user", "go"), a(use("t1")))
    assert repaired(*turns)[0] == list(turns)
    found, repairs = repaired(*turns, close_open=True)
    assert [turn["role"] for turn in found] == ["user", "assistant", "user"]
    assert repairs == {"results_added": 1}


def test_a_call_is_open_when_only_an_empty_result_followed() -> None:
    found, _ = repaired(words("user", "go"), a(use("t1")), u({"type": "tool_result", "tool_use_id": "gone"}))
    assert found == [words("user", "go"), a(use("t1"))]


@pytest.mark.parametrize("faithful", [False, True])
def test_thinking_stays_only_in_a_faithful_repair(faithful: bool) -> None:
    turns = (words("user", "go"), a(thinking(), text("x")))
    found, repairs = repaired(*turns, faithful=faithful)
    assert (found == list(turns)) is faithful
    assert repairs == ({} if faithful else {"thinking_blocks_dropped": 1})


def test_a_signed_summary_of_the_api_stands_first_and_what_it_covers_goes() -> None:
    summary = {"type": "compaction", "content": "what was", "signature": "SIG"}
    found, repairs = repaired(words("user", "old"), a(text("older"), summary, text("new")), u(text("go on")))
    assert found == [a(summary, text("new")), u(text("go on"))]
    assert repairs == {"covered_turns_dropped": 2}
    assert repaired(*found) == (found, {})


def test_an_unsigned_summary_of_the_api_stands_where_it_is() -> None:
    turns = (words("user", "old"), a({"type": "compaction", "content": "what was", "encrypted_content": "x"}))
    assert repaired(*turns) == (list(turns), {})
    assert repaired(*turns[1:])[1] == {"opening_added": 1}


def test_reserved_ids_are_those_of_the_whole_history() -> None:
    found, _ = repaired(
        words("user", "go"), a(use("c")), u(result("c")), a(use("c")), u(result("c")), a(use("c_2")), u(result("c_2"))
    )
    assert [block["id"] for turn in found[1::2] for block in turn["content"]] == ["c", "c_3", "c_2"]


def test_the_report_adds_up() -> None:
    _, report = repair([a(text("x", index=1), text(""))])
    assert report.counts == {"fields_dropped": 1, "blank_blocks_dropped": 1, "opening_added": 1}
    assert report.total == 3
