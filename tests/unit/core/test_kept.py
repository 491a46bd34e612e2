"""Kept messages in their new place."""

from __future__ import annotations

from compaction.core import kept
from compaction.core.boundary import PreservedSegment
from compaction.core.messages import Message

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "SIG"}
HIDDEN = {"type": "redacted_thinking", "data": "XYZ"}
TEXT = {"type": "text", "text": "Done."}


def says(name: str | None, *blocks: dict[str, str], parent: str | None = None) -> Message:
    return Message(role="assistant", content=list(blocks), uuid=name, parent_uuid=parent)


def said(name: str | None, parent: str | None = None) -> Message:
    return Message(role="user", content="Go on.", uuid=name, parent_uuid=parent)


def test_thinking_goes_and_everything_else_stays_the_same_object() -> None:
    messages = [said("q"), says("a", THOUGHT, TEXT, HIDDEN), says("b", TEXT)]
    found = kept.without_thinking(messages)
    assert found[1].content == [TEXT]
    assert (found[0], found[2]) == (messages[0], messages[2])
    assert found[0] is messages[0]
    assert found[2] is messages[2]
    assert messages[1].content == [THOUGHT, TEXT, HIDDEN]


def test_thinking_before_the_start_stays() -> None:
    messages = [says("a", THOUGHT, TEXT), says("b", THOUGHT, TEXT)]
    assert [message.content for message in kept.without_thinking(messages, 1)] == [[THOUGHT, TEXT], [TEXT]]


def test_what_hung_on_a_message_of_thinking_hangs_on_its_parent() -> None:
    messages = [
        said("q"),
        says("a", THOUGHT, parent="q"),
        says("b", HIDDEN, parent="a"),
        says("c", TEXT, parent="b"),
        said("d", parent="c"),
    ]
    found = kept.without_thinking(messages)
    assert [(message.uuid, message.parent_uuid) for message in found] == [("q", None), ("c", "q"), ("d", "c")]


def test_a_message_of_thinking_without_a_uuid_just_goes() -> None:
    assert kept.without_thinking([says(None, THOUGHT), said("q")]) == (said("q"),)


def test_a_lost_parent_is_replaced_by_the_message_before() -> None:
    found = kept.chained([said("q", parent="gone"), said("r", parent="also-gone"), said("s", parent="r"), said("t")])
    assert [message.parent_uuid for message in found] == ["gone", "q", "r", None]


def test_two_that_hang_on_the_same_kept_message_stay_so() -> None:
    messages = [said("q"), says("a", TEXT, parent="q"), says("b", TEXT, parent="q")]
    assert all(one is other for one, other in zip(kept.chained(messages), messages, strict=True))


def test_a_message_without_a_uuid_can_be_nobodys_parent() -> None:
    assert [message.parent_uuid for message in kept.chained([said(None), said("r", parent="gone")])] == [None, "gone"]


def test_carried_messages_are_both() -> None:
    messages = [said("q", parent="gone"), says("a", THOUGHT, parent="q"), said("r", parent="elsewhere")]
    assert [(message.uuid, message.parent_uuid) for message in kept.carried(messages)] == [("q", "gone"), ("r", "q")]


def test_a_summary_of_the_apis_own_is_kept_as_text() -> None:
    """As a block it would make the API forget the summary that stands before the kept messages."""
    block = {"type": "compaction", "content": "What was.", "signature": "SIG"}
    [found] = kept.carried([says("a", THOUGHT, block, TEXT)])
    assert found.content == [{"type": "text", "text": "[compaction] What was."}, TEXT]


def test_behind_an_earlier_summary_the_apis_own_are_text_and_no_thinking_follows_them() -> None:
    block = {"type": "compaction", "content": "What was.", "encrypted_content": "XYZ"}
    ours = Message(role="user", content="Ours.", is_compact_summary=True)
    messages = (ours, says("a", THOUGHT, TEXT), says("b", THOUGHT, block), says("c", THOUGHT, TEXT))
    found = kept.behind_ours(messages)
    assert found[:2] == messages[:2]
    assert [message.content for message in found[2:]] == [[{"type": "text", "text": "[compaction] What was."}], [TEXT]]
    assert kept.behind_ours(messages[1:]) == messages[1:]


def test_the_preserved_segment_names_both_ends_and_its_anchor() -> None:
    segment = kept.preserved([said("q"), said(None), said("s")], "summary")
    assert segment == PreservedSegment(head_uuid="q", tail_uuid="s", anchor_uuid="summary", messages=3)
    assert kept.preserved([], "summary") is None
