"""Which messages of a live view a compaction replaces, and which stay word for word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.core import grouping
from compaction.core.messages import Message, conversation


@dataclass(frozen=True, slots=True)
class Split:
    """`replaced` goes into the summary, `kept` stays verbatim; both in order, together the whole conversation."""

    replaced: tuple[Message, ...]
    kept: tuple[Message, ...]


def split_full(messages: Sequence[Message]) -> Split:
    """Everything is replaced but a last round whose tool calls are still open: its results may come yet (DESIGN §8)."""
    rounds = grouping.rounds(conversation(messages))
    if rounds and open_calls(rounds[-1].messages):
        kept = rounds[-1].messages
        before = tuple(message for one in rounds[:-1] for message in one.messages)
        return Split(before, kept)
    return Split(tuple(message for one in rounds for message in one.messages), ())


def open_calls(messages: Sequence[Message]) -> frozenset[str]:
    """Ids of the tool calls in `messages` that have no result in `messages`."""
    asked: set[str] = set()
    answered: set[str] = set()
    for message in messages:
        if isinstance(message.content, str):
            continue
        for block in message.content:
            if block["type"] == "tool_use" and isinstance(block.get("id"), str):
                asked.add(block["id"])
            elif block["type"] == "tool_result" and isinstance(block.get("tool_use_id"), str):
                answered.add(block["tool_use_id"])
    return frozenset(asked - answered)
