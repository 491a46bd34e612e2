"""The order in which things happened, where it is not the order of the list.

A compaction of scope `from` keeps older messages and summarises what came after them; the order of a result is fixed,
so its summary stands before them (docs/decisions). The summary message says for how many messages that holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, conversation

SUMMARY_KIND = "compact_summary"  # metadata.kind of a summary message that says more than that it is one
EARLIER = "earlier_messages"  # metadata: how many messages right after the summary are older than what it tells


def summary_metadata(earlier: int) -> dict[str, Json] | None:
    """The metadata of a summary message before `earlier` older messages; None when there are none."""
    return {"kind": SUMMARY_KIND, EARLIER: earlier} if earlier else None


def chronological(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The conversation as it happened: each summary behind the older messages that it stands before. Linear time."""
    return tuple(message for message, _ in _ordered(conversation(messages)))


def bound(messages: Sequence[Message]) -> list[bool]:
    """For each place in `chronological(messages)` whether a cut there parts a summary from what it stands before.

    Places run from 0 to the number of messages, like those of `core.cuts`.
    """
    held = [0]
    for _, depth in _ordered(conversation(messages)):
        held.append(depth)
    return [depth > 0 for depth in held]


def _ordered(spoken: Sequence[Message]) -> list[tuple[Message, int]]:
    """The messages in the order in which they happened, each with the number of groups that go on behind it."""
    ordered: list[tuple[Message, int]] = []
    waiting: list[tuple[int, Message]] = []  # where the older messages end, the summary that comes then
    for place, message in enumerate(spoken):
        while waiting and waiting[-1][0] == place:
            summary = waiting.pop()[1]
            ordered.append((summary, len(waiting)))
        earlier = _earlier(message)
        if earlier:
            end = min(place + 1 + earlier, waiting[-1][0] if waiting else len(spoken))
            waiting.append((end, message))
        else:
            ordered.append((message, len(waiting)))
    ordered += [(summary, depth) for depth, (_, summary) in reversed(list(enumerate(waiting)))]
    return ordered


def _earlier(message: Message) -> int:
    facts: Mapping[str, Json] = (message.metadata or {}) if message.is_compact_summary else {}
    count = facts.get(EARLIER) if facts.get("kind") == SUMMARY_KIND else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0
