"""Where a conversation may be cut in two."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from compaction.core.cuts import safe_cuts
from compaction.core.messages import Message, conversation
from tests.unit.core.strategies import clean_sessions, histories


def user(*blocks: dict[str, Any]) -> Message:
    return Message(role="user", content=list(blocks) or "Go on.")


def says(*blocks: dict[str, Any], api: str | None = None) -> Message:
    return Message(role="assistant", content=list(blocks) or "Done.", api_message_id=api)


def use(ident: str, kind: str = "tool_use") -> dict[str, Any]:
    return {"type": kind, "id": ident, "name": "Read", "input": {}}


def told(ident: str, kind: str = "tool_result") -> dict[str, Any]:
    return {"type": kind, "tool_use_id": ident, "content": "x"}


def cuts(*messages: Message) -> str:
    """A bar for each safe place, a dash for each other."""
    return "".join("|" if safe else "-" for safe in safe_cuts(messages))


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([], "|"),
        ([user(), says(), user()], "||||"),
        ([says(use("a")), user(told("a")), user()], "|-||"),
        ([says(use("a"), use("b")), user(told("a")), user(told("b")), says()], "|--||"),
        ([says(use("a")), user(), says()], "||||"),  # no result: nothing to part
        ([user(told("a")), says()], "|||"),
        ([says(use("a")), user(told("a")), says(), user(told("a"))], "|-|||"),  # a second result is not bound
        ([says(use("a"), use("a")), user(told("a")), user(told("a"))], "|--|"),
        ([says(use("a")), user(), says(use("a")), user(told("a"))], "|||-|"),
        ([says(use("a")), says(), user(), user(told("a"))], "|---|"),
        ([says(api="m"), user(told("x")), says(api="m"), user()], "|--||"),
        ([says(api="m"), says(api="n")], "|||"),
        ([says(), says(), user()], "|-||"),  # neighbours without an id are one answer
        ([says(use("s", "server_tool_use")), user(), says(told("s", "web_search_tool_result"))], "|--|"),
    ],
)
def test_cuts_part_no_pair_and_no_answer(messages: list[Message], found: str) -> None:
    assert cuts(*messages) == found


def test_a_message_that_stands_twice_is_placed_twice() -> None:
    same = says(use("a"))
    assert cuts(same, user(told("a")), same, user(told("a"))) == "|-|-|"


@settings(max_examples=200, deadline=None)
@given(histories())
def test_both_ends_are_always_safe(history: tuple[Message, ...]) -> None:
    spoken = conversation(history)
    found = safe_cuts(spoken)
    assert (len(found), found[0], found[-1]) == (len(spoken) + 1, True, True)


@settings(max_examples=200, deadline=None)
@given(clean_sessions())
def test_a_safe_cut_has_every_call_with_its_result_on_one_side(history: tuple[Message, ...]) -> None:
    for place, safe in enumerate(safe_cuts(history)):
        before = [block for message in history[:place] for block in message.blocks()]
        behind = [block for message in history[place:] for block in message.blocks()]
        asked = {block["id"] for block in before if block["type"] == "tool_use"}
        answered = {block["tool_use_id"] for block in behind if block["type"] == "tool_result"}
        assert not (safe and asked & answered)
