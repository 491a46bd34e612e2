"""Rounds: what belongs to one answer of the model, and that a cut between rounds parts no call from its result."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings

from compaction.core import grouping
from compaction.core.fields import ident
from compaction.core.grouping import Round, has_rounds, rounds
from compaction.core.messages import Message
from compaction.core.turns import distinct, merge
from tests.unit.core.samples import assistant, result, text, usage, use, user
from tests.unit.core.strategies import histories


def shape(*messages: Message) -> list[list[int]]:
    """The rounds as places in `messages`."""
    places = {id(message): place for place, message in enumerate(messages)}
    return [[places[id(message)] for message in one.messages] for one in rounds(messages)]


def test_no_messages_have_no_rounds() -> None:
    assert rounds([]) == ()


def test_what_stands_before_the_first_answer_is_round_zero() -> None:
    first, second, answer = user("a"), user("b"), assistant("c")
    assert rounds([first, second, answer]) == (Round(0, (first, second)), Round(1, (answer,)))


def test_a_history_that_begins_with_an_answer_has_no_empty_round() -> None:
    assert shape(assistant("a"), user("b"), assistant("c")) == [[0, 1], [2]]


def test_each_answer_starts_a_round_and_takes_what_follows() -> None:
    assert shape(
        user("go"),
        assistant(use("t1"), api_message_id="m1"),
        user(result("t1")),
        assistant("done", api_message_id="m2"),
        user("thanks"),
    ) == [[0], [1, 2], [3, 4]]


def test_fragments_of_one_answer_are_one_round_even_behind_results() -> None:
    assert shape(
        user("go"),
        assistant("a", api_message_id="m1"),
        assistant(use("t1"), api_message_id="m1"),
        user(result("t1")),
        assistant(use("t2"), api_message_id="m1"),
        user(result("t2")),
        assistant("b", api_message_id="m2"),
    ) == [[0], [1, 2, 3, 4, 5], [6]]


def test_a_fragment_that_comes_after_the_next_answer_joins_its_own_round_with_its_result() -> None:
    assert shape(
        assistant("a", api_message_id="m1"),
        assistant("b", api_message_id="m2"),
        assistant(use("t1"), api_message_id="m1"),
        user(result("t1")),
    ) == [[0, 2, 3], [1]]


def test_an_id_that_comes_again_after_the_user_spoke_is_a_new_answer() -> None:
    assert shape(
        assistant("a", api_message_id="msg_local"), user("next"), assistant("b", api_message_id="msg_local")
    ) == [[0, 1], [2]]


def test_an_injected_message_does_not_end_an_answer() -> None:
    assert shape(
        assistant("a", api_message_id="m1"), user("reminder", is_meta=True), assistant("b", api_message_id="m1")
    ) == [[0, 1, 2]]


def test_an_id_with_another_prompt_size_is_a_new_answer() -> None:
    assert shape(
        assistant(use("t1"), api_message_id="same", usage=usage(1_000)),
        user(result("t1")),
        assistant(use("t2"), api_message_id="same", usage=usage(2_000)),
        user(result("t2")),
        assistant("end", api_message_id="same", usage=usage(2_000)),
    ) == [[0, 1], [2, 3, 4]]


def test_neighbours_without_ids_are_one_answer() -> None:
    assert shape(assistant("a"), assistant("b"), user("c"), assistant("d")) == [[0, 1, 2], [3]]


def test_an_answer_with_an_id_is_another_one_than_its_neighbour_without() -> None:
    assert shape(assistant("a"), assistant("b", api_message_id="m1"), assistant("c")) == [[0], [1], [2]]


def test_an_answer_right_behind_open_calls_stays_in_their_round() -> None:
    assert shape(
        assistant(use("t1"), api_message_id="m1"),
        assistant(use("t2"), api_message_id="m2"),
        user(result("t1"), result("t2")),
        assistant("end", api_message_id="m3"),
    ) == [[0, 1, 2], [3]]


def test_one_result_message_closes_all_calls_of_its_id() -> None:
    assert shape(
        assistant(use("c"), use("c"), api_message_id="m1"),
        user(result("c"), result("c")),
        assistant("a late fragment", api_message_id="m1"),
        assistant("next", api_message_id="m2"),
    ) == [[0, 1, 2], [3]]


def test_a_late_result_joins_the_round_of_its_call() -> None:
    assert shape(
        user("go"),
        assistant(use("t1"), api_message_id="m1"),
        user("any news?"),
        assistant("not yet", api_message_id="m2"),
        user(result("t1")),
        assistant("there it is", api_message_id="m3"),
    ) == [[0], [1, 2, 4], [3], [5]]


def test_a_late_result_beside_words_of_the_user_stays_with_the_words() -> None:
    assert shape(
        assistant(use("t1"), api_message_id="m1"),
        user("any news?"),
        assistant("not yet", api_message_id="m2"),
        user(result("t1"), text("and check the docs")),
    ) == [[0, 1], [2, 3]]


def test_late_results_of_two_rounds_in_one_message_stay_where_they_are() -> None:
    assert shape(
        assistant(use("t1"), api_message_id="m1"),
        user("x"),
        assistant(use("t2"), api_message_id="m2"),
        user("y"),
        assistant("z", api_message_id="m3"),
        user(result("t1"), result("t2")),
    ) == [[0, 1], [2, 3], [4, 5]]


def test_a_second_result_for_an_answered_call_stays_where_it_is() -> None:
    assert shape(
        assistant(use("job"), api_message_id="m1"),
        user(result("job", "pending")),
        assistant("waiting", api_message_id="m2"),
        user(result("job", "done")),
    ) == [[0, 1], [2, 3]]


def test_a_result_belongs_to_the_newest_call_of_a_reused_id() -> None:
    assert shape(
        assistant(use("call_0"), api_message_id="m1"),
        user("interrupted"),
        assistant(use("call_0"), api_message_id="m2"),
        user("x"),
        assistant("y", api_message_id="m3"),
        user(result("call_0")),
    ) == [[0, 1], [2, 3, 5], [4]]


def test_what_is_outside_the_conversation_stays_where_it_stands() -> None:
    side = assistant(use("t9"), api_message_id="m9", is_sidechain=True)
    marker = Message(role="system", content="")
    assert [len(one.messages) for one in rounds([marker, user("go"), side, assistant("a"), side, user("b")])] == [3, 3]
    assert [len(one.messages) for one in rounds([marker, assistant("a"), user("b")])] == [3]


def test_counting_rounds_reads_no_further_than_it_must() -> None:
    def endless() -> Any:  # noqa: ANN401 - a generator
        yield user("a")
        yield assistant("b")
        raise AssertionError

    assert has_rounds(endless(), 2)
    assert not has_rounds([user("a")], 2)
    assert has_rounds([], 0)
    assert not has_rounds([], 1)


@settings(max_examples=100, deadline=None)
@given(histories())
def test_each_message_is_in_exactly_one_round(history: tuple[Message, ...]) -> None:
    found = rounds(history)
    assert sorted(id(message) for one in found for message in one.messages) == sorted(map(id, history))
    assert [one.index for one in found] == list(range(len(found)))
    assert all(one.messages for one in found)


@settings(max_examples=200, deadline=None)
@given(histories())
def test_no_cut_between_rounds_parts_a_call_from_its_result(history: tuple[Message, ...]) -> None:
    spoken = distinct(history)
    home = {
        id(block): number
        for number, members in enumerate(grouping.grouped(spoken))
        for message in members
        if isinstance(message.content, list)
        for block in message.content
    }
    lists = [message.content for message in spoken if isinstance(message.content, list)]
    stored = {id(block): place for place, block in enumerate(block for blocks in lists for block in blocks)}
    for call, answer in _pairs(merge(history)):
        if stored[id(call)] < stored[id(answer)]:  # what was stored before its call was no result of it yet
            assert home[id(call)] == home[id(answer)]


def _pairs(turns: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Call and result of neighbouring turns, by id, in order where ids repeat."""
    found = []
    for asking, answering in pairwise(turns):
        if asking["role"] == "user" or isinstance(asking["content"], str) or isinstance(answering["content"], str):
            continue
        waiting: dict[str, list[dict[str, Any]]] = {}
        for block in asking["content"]:
            if block["type"] == "tool_use":
                waiting.setdefault(ident(block.get("id")), []).append(block)
        for block in answering["content"]:
            queue = waiting.get(ident(block.get("tool_use_id"))) if block["type"] == "tool_result" else None
            if queue:
                found.append((queue.pop(0), block))
    return found
