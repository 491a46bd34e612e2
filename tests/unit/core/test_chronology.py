"""The order in which things happened."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.core import chronology
from compaction.core.messages import Message


def said(name: str) -> Message:
    return Message(role="user", content=name, uuid=name)


def summary(name: str, earlier: Any, kind: str = "compact_summary", **facts: Any) -> Message:  # noqa: ANN401 - any JSON
    metadata = {"kind": kind, "earlier_messages": earlier}
    return Message(role="user", content=name, uuid=name, metadata=metadata, **{"is_compact_summary": True, **facts})


def order(*messages: Message) -> str:
    return " ".join(str(message.uuid) for message in chronology.chronological(messages))


def bound(*messages: Message) -> str:
    return "".join("-" if held else "|" for held in chronology.bound(messages))


A, B, C, D = map(said, "abcd")


def test_a_summary_of_a_recent_part_stands_behind_the_older_messages() -> None:
    assert order(summary("s", 2), A, B, C) == "a b s c"
    assert bound(summary("s", 2), A, B, C) == "|--||"


def test_a_summary_of_summaries_does_too() -> None:
    """T was made of what came behind c, while s with a and b was kept before it."""
    assert order(summary("t", 4), summary("s", 2), A, B, C, D) == "a b s c t d"
    assert bound(summary("t", 4), summary("s", 2), A, B, C, D) == "|----||"


def test_two_that_end_together_come_in_their_order() -> None:
    assert order(summary("t", 3), summary("s", 2), A, B) == "a b s t"


def test_a_count_that_is_too_large_ends_with_what_is_around_it() -> None:
    assert order(summary("s", 9), A, B) == "a b s"
    assert order(summary("t", 2), summary("s", 9), A, B) == "a s t b"
    assert bound(summary("t", 2), summary("s", 9), A, B) == "|--||"


def test_messages_outside_the_conversation_do_not_count() -> None:
    marker = Message(role="system", content="", metadata={"kind": "compact_boundary"})
    aside = Message(role="assistant", content="Aside.", is_sidechain=True)
    assert order(marker, summary("s", 2), A, aside, B, C) == "a b s c"


@pytest.mark.parametrize(
    "other",
    [
        summary("s", 0),
        summary("s", -1),
        summary("s", True),
        summary("s", "2"),
        summary("s", None),
        summary("s", 2, kind="mine"),
        summary("s", 2, is_compact_summary=False),
        said("s"),
    ],
)
def test_anything_else_stays_where_it_is(other: Message) -> None:
    assert order(other, A, B) == "s a b"


def test_the_metadata_is_what_is_read() -> None:
    facts = chronology.summary_metadata(1)
    assert order(Message(role="user", content="s", uuid="s", is_compact_summary=True, metadata=facts), A, B) == "a s b"
    assert chronology.summary_metadata(0) is None
