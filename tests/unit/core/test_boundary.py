"""The marker of a compaction, and where a live view begins."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.core.boundary import Boundary, PreservedSegment, boundary_of, live
from compaction.core.jsonbytes import decode
from compaction.core.messages import Message, encode_message, message_from


def boundary(**facts: Any) -> Boundary:  # noqa: ANN401 - the fields of a boundary
    plain = {
        "uuid": "b",
        "trigger": "manual",
        "strategy": "fresh",
        "pre_tokens": 9,
        "covers_through_seq": 7,
        "job_id": "j",
    }
    return Boundary(**{**plain, **facts})


def test_the_marker_says_how_the_compaction_was_made() -> None:
    segment = PreservedSegment(head_uuid="h", tail_uuid="t", anchor_uuid="a", messages=3)
    message = boundary(scope="up_to", chain=2, preserved=segment, pinned=("Use tabs.",)).message()
    assert (message.role, message.content, message.uuid, message.is_boundary) == ("system", "", "b", True)
    assert message.metadata == {
        "kind": "compact_boundary",
        "trigger": "manual",
        "strategy": "fresh",
        "pre_tokens": 9,
        "covers_through_seq": 7,
        "job_id": "j",
        "chain": 2,
        "scope": "up_to",
        "pinned": ["Use tabs."],
        "preserved_segment": {"head_uuid": "h", "tail_uuid": "t", "anchor_uuid": "a", "messages": 3},
    }
    assert message_from(decode(encode_message(message))).metadata == message.metadata


def test_a_plain_one_says_no_more_than_that() -> None:
    assert set(boundary().metadata()) == {"kind", "trigger", "strategy", "pre_tokens", "covers_through_seq", "job_id"}


def test_a_live_view_tells_the_facts_of_its_boundary() -> None:
    assert boundary_of([boundary().message(), Message(role="user", content="Go on.")]) == boundary().metadata()
    assert boundary_of([Message(role="user", content="Go on."), Message(role="system", content="Be brief.")]) is None


def said(name: str) -> Message:
    return Message(role="user", content=name, uuid=name)


def summary(name: str) -> Message:
    return Message(role="user", content=name, uuid=name, is_compact_summary=True)


def marker(preserved: Any = None) -> Message:  # noqa: ANN401 - any JSON
    facts = {"kind": "compact_boundary", "preserved_segment": preserved}
    return Message(role="system", content="", uuid="b", metadata=facts)


A, B, S, T = said("a"), said("b2"), summary("s"), summary("t")


@pytest.mark.parametrize(
    ("messages", "start"),
    [
        ([], 0),
        ([A, B], 0),
        ([A, marker(), S, B], 1),
        ([A, marker(), S, B, marker(), T], 4),
        ([A, S, B], 1),  # a summary without a marker
        ([A, S, B, T, A], 3),
        ([marker(), S, A, T, B], 3),  # a newer one of another system
        ([marker({"messages": 2}), S, T, A, B], 0),  # the older summary was kept
        ([marker({"messages": 2}), S, A, T, B], 0),
        ([marker({"messages": 2}), S, A, B, T], 4),
        ([marker({"messages": "2"}), S, A, T], 3),
        ([marker([2]), S, A, T], 3),
        ([marker({}), S, A, T], 3),
    ],
)
def test_the_live_view_begins_at_the_last_boundary_or_summary(messages: list[Message], start: int) -> None:
    assert live(messages) == tuple(messages[start:])
