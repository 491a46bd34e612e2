"""What the head cut promises for any history, any refusal and any measure."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import grouping, room, tokens, truncation
from compaction.core.messages import BOUNDARY_KIND, Message
from compaction.core.room import Room
from compaction.core.truncation import RETRY_MARKER, cut, plan_cut, retry_marker, without_marker
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


SUMMARY = Message(role="user", content="s" * 500, is_compact_summary=True, seq=2)
BOUNDARY = Message(role="system", content="", metadata={"kind": BOUNDARY_KIND}, seq=1)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Answers with up to three calls, their results, words of the user; perhaps a summary or a marker ahead."""
    messages: list[Message] = list(draw(st.sampled_from([[], [SUMMARY], [BOUNDARY, SUMMARY], [retry_marker()]])))
    messages += [user(draw(st.integers(1, 3_000))) for _ in range(draw(st.integers(0, 2)))]
    for number in range(draw(st.integers(0, 8))):
        calls = [f"toolu_{number}_{index}" for index in range(draw(st.integers(0, 3)))]
        blocks: list[dict[str, Any]] = [{"type": "text", "text": "a" * draw(st.integers(1, 500))}]
        blocks += [{"type": "tool_use", "id": name, "name": "Read", "input": {"path": "x"}} for name in calls]
        messages.append(Message(role="assistant", content=blocks, api_message_id=f"msg_{number}"))
        sizes = st.integers(1, 20_000)
        results = [{"type": "tool_result", "tool_use_id": name, "content": "r" * draw(sizes)} for name in calls]
        messages += [Message(role="user", content=results)] if results else []
        messages += [user(draw(st.integers(1, 2_000)))] if draw(st.booleans()) else []
    return [Message(**{**_fields(message), "seq": seq}) for seq, message in enumerate(messages, 1)]


def _fields(message: Message) -> dict[str, Any]:
    names = ("role", "content", "api_message_id", "is_meta", "is_compact_summary", "metadata")
    return {name: getattr(message, name) for name in names}


refusals = st.builds(
    PromptTooLong,
    unit=st.sampled_from(["tokens", "bytes"]),
    gap=st.none() | st.integers(-5, 50_000),
    actual=st.none() | st.integers(0, 60_000),
    limit=st.none() | st.integers(0, 60_000),
    lower_bound=st.booleans(),
)
SENT = Room(measure=tokens.estimate_message, measure_bytes=room.sent_bytes)
rooms = st.sampled_from([ROOM, Room(), Room(fits_tokens=2_000, fixed_tokens=500), SENT])


def _ids(messages: tuple[Message, ...] | list[Message], kind: str, key: str) -> set[str]:
    return {block[key] for message in messages for block in message.blocks() if block["type"] == kind}


@settings(deadline=None)  # shared machines stall
@given(histories(), refusals, rooms)
def test_every_cut_keeps_its_promises(messages: list[Message], refused: PromptTooLong, around: Room) -> None:
    """Kept and dropped are everything, in order; no pair is parted; the newest round stays; the request shrinks."""
    before = copy.deepcopy(messages)
    try:
        found = cut(messages, refused, room=around)
    except PromptTooLong:
        return
    finally:
        assert messages == before
    plain = without_marker(messages)
    kept = [message.seq for message in found.messages if message.seq is not None]
    gone = [message.seq for message in plain if message.seq is not None and message.seq not in kept]
    assert kept == sorted(kept)
    assert len(kept) + found.dropped_messages == len(plain)
    assert (found.first_seq, found.last_seq) == ((gone[0], gone[-1]) if gone else (None, None))
    assert not gone or not set(kept) & set(range(gone[0], gone[-1]))
    assert _ids(found.messages, "tool_use", "id") == _ids(found.messages, "tool_result", "tool_use_id")
    assert all(message.seq in kept for message in messages if message.is_compact_summary)
    rounds = grouping.rounds(
        [message for message in plain if message.role != "system" and not message.is_compact_summary]
    )
    assert all(message.seq in kept for one in rounds[-1:] for message in one.messages)
    assert found.dropped_rounds + found.remaining_rounds == len(rounds)
    assert next(message.role for message in found.messages if message.role != "system") == "user"
    measure, fixed = (around.measure_bytes, 0) if refused.unit == "bytes" else (around.measure, around.fixed_tokens)
    assert found.remaining == fixed + sum(map(measure, found.messages))
    assert found.remaining < fixed + sum(map(measure, plain))


@settings(deadline=None)  # shared machines stall
@given(histories(), refusals, rooms)
def test_a_cut_made_again_is_the_same(messages: list[Message], refused: PromptTooLong, around: Room) -> None:
    """The pipeline reloads the history for each call and replays the cuts."""

    def outcome() -> truncation.Cut | None:
        try:
            return cut(messages, refused, room=around)
        except PromptTooLong:
            return None

    assert outcome() == outcome()


@settings(deadline=None)  # shared machines stall
@given(histories(), st.integers(1, 30_000))
def test_a_planned_cut_fits_or_is_as_small_as_it_gets(messages: list[Message], fits: int) -> None:
    try:
        found = plan_cut(messages, fits, room=ROOM)
    except PromptTooLong:
        return
    if found is not None and found.remaining > fits:
        assert found.remaining_rounds == 1 or found.dropped_rounds == found.remaining_rounds == 0
