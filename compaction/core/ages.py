"""When messages were made, as far as their producers say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from compaction.core.jsonbytes import Json
from compaction.core.messages import Message

MAX_STAMP_CHARS = 40  # RFC 3339 with nanoseconds and an offset has 35


def moment(stamp: Json) -> datetime | None:
    """The moment that an RFC 3339 text names, None for anything else. A time without an offset is UTC."""
    if not isinstance(stamp, str) or len(stamp) > MAX_STAMP_CHARS:
        return None
    try:
        found = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def last_answer_at(messages: Sequence[Message]) -> datetime | None:
    """When the last assistant message of the conversation was made; None without one, and when it does not say."""
    for message in reversed(messages):
        if message.role == "assistant" and message.in_conversation:
            return moment(message.created_at)
    return None
