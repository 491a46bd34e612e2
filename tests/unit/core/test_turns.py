"""Turns: one per speaker, content untouched."""

from __future__ import annotations

from compaction.core.messages import Message
from compaction.core.turns import distinct, merge
from tests.unit.core.samples import assistant, result, text, thinking, use, user


def test_a_lone_string_stays_a_string_and_joined_ones_become_blocks() -> None:
    assert merge([user("a"), assistant("b"), assistant("c"), user("d")]) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [text("b"), text("c")]},
        {"role": "user", "content": "d"},
    ]


def test_fragments_are_merged_where_the_first_one_stands() -> None:
    merged = merge(
        [
            user("go"),
            assistant(thinking(), api_message_id="m1"),
            assistant(use("t1"), api_message_id="m1"),
            user(result("t1", "one")),
            assistant(use("t2"), api_message_id="m1"),
            user(result("t2", "two"), text("and?")),
            assistant("end", api_message_id="m2"),
        ]
    )
    assert [turn["role"] for turn in merged] == ["user", "assistant", "user", "assistant"]
    assert merged[1]["content"] == [thinking(), use("t1"), use("t2")]
    assert merged[2]["content"] == [result("t1", "one"), result("t2", "two"), text("and?")]


def test_blocks_are_the_stored_objects() -> None:
    block = text("a")
    message = Message(role="user", content=[block])
    (turn,) = merge([message])
    assert turn["content"] is message.content
    assert merge([message, user("b")])[0]["content"][0] is block


def test_answers_of_different_ids_that_follow_each_other_are_one_turn() -> None:
    merged = merge([user("x"), assistant("a", api_message_id="m1"), assistant("b", api_message_id="m2")])
    assert merged[1:] == [{"role": "assistant", "content": [text("a"), text("b")]}]


def test_a_row_written_twice_counts_once_and_the_first_one_wins() -> None:
    assert merge([user("a", uuid="u-1"), assistant("b", uuid="u-2"), user("changed", uuid="u-1")]) == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
    ]


def test_rows_without_a_uuid_are_all_kept() -> None:
    assert len(distinct([user("a"), user("a")])) == 2


def test_what_the_model_does_not_see_is_left_out() -> None:
    assert merge(
        [
            Message(role="system", content="marker"),
            user("a"),
            assistant("sub-agent", is_sidechain=True),
            assistant("half", partial=True, uuid="u-1"),
            assistant("whole", uuid="u-1"),
        ]
    ) == [{"role": "user", "content": "a"}, {"role": "assistant", "content": "whole"}]


def test_injected_messages_were_seen_by_the_model_and_stay() -> None:
    assert merge([user("a"), user("reminder", is_meta=True)]) == [
        {"role": "user", "content": [text("a"), text("reminder")]}
    ]
