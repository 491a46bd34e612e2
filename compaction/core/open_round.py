"""A last round whose calls still wait for their results. It stays verbatim through every compaction (DESIGN §8)."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.core import grouping
from compaction.core.messages import Message, conversation
from compaction.core.rebuilt import is_rebuilt


def open_round(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The last round of the conversation if calls in it are open, else nothing. What a summary covers waits no more."""
    spoken = conversation(messages)
    if _all_answered(spoken):
        return ()  # the usual case, seen without making rounds
    rounds = grouping.rounds(spoken)
    last = rounds[-1].messages if rounds else ()
    start = max((place for place, message in enumerate(last, 1) if message.is_compact_summary), default=0)
    return last[start:] if open_calls(last[start:]) else ()


def open_calls(messages: Sequence[Message]) -> frozenset[str]:
    """Ids of the client tools' calls in `messages` that have no result in `messages`."""
    asked: set[str] = set()
    answered: set[str] = set()
    for message in messages:
        for block in [] if isinstance(message.content, str) else message.content:
            if message.role == "assistant" and block["type"] == "tool_use" and isinstance(block.get("id"), str):
                asked.add(block["id"])
            elif block["type"] == "tool_result" and isinstance(block.get("tool_use_id"), str):
                answered.add(block["tool_use_id"])
    return frozenset(asked - answered)


def _all_answered(spoken: Sequence[Message]) -> bool:
    """Whether every call has a user's result somewhere behind it; such a result is in the last round if its call is."""
    asked: set[str] = set()
    for message in spoken:
        if isinstance(message.content, str):
            continue
        for block in message.content:
            if message.role == "user":
                if block["type"] == "tool_result" and isinstance(block.get("tool_use_id"), str):
                    asked.discard(block["tool_use_id"])
            elif block["type"] == "tool_use" and isinstance(block.get("id"), str):
                asked.add(block["id"])
    return not asked


def sendable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with attachments before an open last round instead of behind it (DESIGN §8).

    For lists that are sent: the results of the open calls can then be appended right behind them.
    """
    rebuilt = [message for message in messages if is_rebuilt(message)]
    waiting = {id(message) for message in open_round(messages)} if rebuilt else set()
    moved = [message for message in rebuilt if id(message) in waiting]
    if not moved:
        return tuple(messages)
    rest = [message for message in messages if id(message) not in {id(one) for one in moved}]
    start = next(place for place, message in enumerate(rest) if id(message) in waiting)
    return (*rest[:start], *moved, *rest[start:])
