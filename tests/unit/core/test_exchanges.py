"""Results find their calls, also where ids are used again."""

from __future__ import annotations

from typing import Any

from compaction.core.exchanges import exchanges
from compaction.core.messages import Message


def calls(*idents: Any, mark: str = "", **facts: Any) -> Message:  # noqa: ANN401 - any JSON, any field
    blocks = [
        {"type": "tool_use", "id": ident, "name": "Read", "input": {"mark": f"{mark}{place}"}}
        for place, ident in enumerate(idents)
    ]
    return Message(role="assistant", content=blocks, **facts)


def results(*idents: Any) -> Message:  # noqa: ANN401 - any JSON
    return Message(role="user", content=[{"type": "tool_result", "tool_use_id": one, "content": "x"} for one in idents])


def marks(*messages: Message) -> list[str]:
    """The mark of the call of each exchange."""
    return [one.call["input"]["mark"] for one in exchanges(messages)]


def test_exchanges_stand_in_the_order_of_their_results() -> None:
    found = exchanges([calls("t1", "t2"), results("t2", "t1")])
    assert [(one.ident, one.call_at, one.result_at) for one in found] == [
        ("t2", (0, 1), (1, 0)),
        ("t1", (0, 0), (1, 1)),
    ]


def test_an_id_that_is_used_again_means_the_newest_answer() -> None:
    assert marks(calls("t", mark="a"), results("t"), calls("t", mark="b"), results("t")) == ["a0", "b0"]
    assert marks(calls("t", mark="a"), Message(role="user", content="Stop."), calls("t", mark="b"), results("t")) == [
        "b0"
    ]


def test_one_answer_that_uses_an_id_twice_is_answered_in_order() -> None:
    assert marks(calls("t", "t"), results("t"), results("t")) == ["0", "1"]
    assert marks(calls("t", mark="a"), calls("t", mark="b"), results("t", "t")) == ["a0", "b0"]


def test_a_second_result_belongs_to_its_call_again() -> None:
    assert marks(calls("t", mark="a"), results("t"), calls("u", mark="b"), results("t", "u")) == ["a0", "a0", "b0"]


def test_what_has_no_partner_is_left_out() -> None:
    assert marks(results("t"), calls("u"), results("v")) == []


def test_ids_that_are_no_strings_are_paired_too() -> None:
    assert marks(calls(None, 7), results(7, None)) == ["1", "0"]


def test_only_the_conversation_counts_and_each_block_in_its_role() -> None:
    wrong = [Message(role="user", content=calls("t").content), Message(role="assistant", content=results("t").content)]
    assert marks(calls("t", is_sidechain=True), results("t"), *wrong) == []


def test_texts_are_passed_over() -> None:
    said = Message(role="user", content=[{"type": "text", "text": "Hm."}])
    assert marks(Message(role="user", content="Hm."), calls("t"), said, results("t")) == ["0"]
