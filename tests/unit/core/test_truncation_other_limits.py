"""Cuts for limits in bytes and media, and cuts before a call is made."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.core import room, tokens
from compaction.core.messages import Message
from compaction.core.room import Room
from compaction.core.truncation import RETRY_MARKER, cut, plan_cut
from compaction.errors import PromptTooLong


def characters(message: Message) -> int:
    """Text counts by its characters, the retry marker nothing: sums stay round."""
    if message.content == RETRY_MARKER:
        return 0
    if isinstance(message.content, str):
        return len(message.content)
    return sum(len(block.get("text") or block.get("content") or "") for block in message.content)


ROOM = Room(measure=characters, measure_bytes=characters)


def user(size: int, seq: int | None = None) -> Message:
    return Message(role="user", content="u" * size, seq=seq)


def tool_round(number: int, size: int) -> list[Message]:
    """A call and its result: two messages, `size` characters."""
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "r" * (size - 10)}
    text = {"type": "text", "text": "a" * 10}
    return [
        Message(role="assistant", content=[text, call], api_message_id=f"msg_{number}", seq=2 * number),
        Message(role="user", content=[result], seq=2 * number + 1),
    ]


def session(rounds: int, size: int, first: int = 100) -> list[Message]:
    """Round 0 of one user message and `rounds` rounds of a call and its result."""
    return [user(first, 1), *(message for number in range(1, rounds + 1) for message in tool_round(number, size))]


def refusal(**facts: Any) -> PromptTooLong:  # noqa: ANN401 - the fields of the error
    return PromptTooLong(**facts)


# -------------------------------------------------------------------------------------------------------- bytes, media


def picture(size: int) -> Message:
    source = {"type": "base64", "media_type": "image/png", "data": "A" * size}
    return Message(role="user", content=[{"type": "text", "text": "Look."}, {"type": "image", "source": source}])


SENT = Room(measure=tokens.estimate_message, measure_bytes=room.sent_bytes)
PICTURES = [user(100), *(picture(10_000) for _ in range(10)), *session(5, 1_000)]


def test_a_byte_limit_takes_the_media_and_no_history() -> None:
    found = cut(PICTURES, refusal(unit="bytes"), room=SENT)
    assert (found.media_removed, found.dropped_rounds, found.shortened_messages) == (10, 0, 0)
    assert len(found.messages) == len(PICTURES)
    assert found.remaining == tokens.estimate_bytes(found.messages)


def test_a_byte_gap_that_the_media_cover_costs_no_history() -> None:
    found = cut(PICTURES, refusal(unit="bytes", gap=50_000, actual=110_000, limit=60_000), room=SENT)
    assert (found.media_removed, found.dropped_rounds) == (10, 0)


def test_a_byte_gap_larger_than_the_media_costs_rounds_too() -> None:
    messages = [picture(10_000), *session(20, 10_000)]
    size = tokens.estimate_bytes(messages)
    found = cut(messages, refusal(unit="bytes", gap=size - 100_000, actual=size, limit=100_000), room=SENT)
    assert found.media_removed == 1
    assert found.dropped_rounds > 5
    assert found.remaining <= 100_000


def test_without_media_a_byte_limit_costs_a_fifth_or_what_its_limit_says() -> None:
    assert cut(session(9, 1_000, first=1_000), refusal(unit="bytes"), room=ROOM).dropped_rounds == 2
    assert cut(session(9, 1_000, first=1_000), refusal(unit="bytes", limit=4_000), room=ROOM).dropped_rounds == 6


def test_media_that_the_request_does_not_show_do_not_help_against_bytes() -> None:
    """A fresh request has markers for media already, so rounds have to go."""
    found = cut([picture(10_000), *session(9, 1_000)], refusal(unit="bytes"))
    assert found.dropped_rounds > 0


def test_a_media_limit_takes_the_media() -> None:
    found = cut(PICTURES, refusal(unit="media"))
    assert (found.media_removed, found.dropped_rounds) == (10, 0)


def test_a_media_limit_without_media_is_refused() -> None:
    with pytest.raises(PromptTooLong):
        cut(session(5, 1_000), refusal(unit="media"))


# ------------------------------------------------------------------------------------------------------- before a call


def test_what_fits_is_not_cut() -> None:
    assert plan_cut(session(9, 1_000), 9_100, room=ROOM) is None
    assert plan_cut(session(9, 1_000), 9_100, counted=9_100) is None


def test_what_does_not_fit_is_cut_at_once() -> None:
    found = plan_cut(session(90, 1_000), 20_000, room=ROOM)
    assert found is not None
    assert (found.remaining_rounds, found.remaining) == (20, 20_000)


def test_the_providers_count_decides_whether_and_how_much() -> None:
    """90,100 of ours are 180,200 of theirs: half of what fits them fits us."""
    found = plan_cut(session(90, 1_000), 100_000, counted=180_200, room=ROOM)
    assert found is not None
    assert (found.remaining_rounds, found.remaining) == (50, 50_000)


def test_a_plan_that_cannot_help_is_a_typed_failure() -> None:
    with pytest.raises(PromptTooLong) as caught:
        plan_cut(tool_round(1, 110), 60, room=ROOM)
    assert (caught.value.actual, caught.value.limit, caught.value.gap) == (110, 60, 50)
