"""The head cut, from hand calculation with a measure of one per character, and its promises for any history."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.core import grouping, room, tokens, truncation
from compaction.core.messages import BOUNDARY_KIND, Message
from compaction.core.results import Dropped
from compaction.core.room import Room
from compaction.core.truncation import MAX_CUTS, RETRY_MARKER, cut, lower_output, plan_cut, retry_marker, without_marker
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


def answer(number: int, size: int, seq: int | None = None) -> Message:
    return Message(role="assistant", content="a" * size, api_message_id=f"msg_{number}", seq=seq)


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


SUMMARY = Message(role="user", content="s" * 500, is_compact_summary=True, seq=2)
BOUNDARY = Message(role="system", content="", metadata={"kind": BOUNDARY_KIND}, seq=1)


def refusal(**facts: Any) -> PromptTooLong:  # noqa: ANN401 - the fields of the error
    return PromptTooLong(**facts)


# ------------------------------------------------------------------------------------------------------- a known gap


@pytest.mark.parametrize(
    ("gap", "rounds"),
    [(1, 1), (100, 1), (101, 2), (1_100, 2), (1_101, 3), (9_099, 10), (9_100, 10)],
)
def test_the_oldest_whole_rounds_go_until_the_gap_is_covered(gap: int, rounds: int) -> None:
    messages = session(10, 1_000)  # 10,100 in eleven rounds, the first of 100
    found = cut(messages, refusal(gap=gap, actual=10_100, limit=10_100 - gap), room=ROOM)
    assert found.dropped_rounds == rounds
    assert found.remaining == 10_100 - (100 + 1_000 * (rounds - 1))
    assert found.remaining <= 10_100 - gap
    assert found.remaining_rounds == 11 - rounds
    assert not found.in_place


def test_the_providers_own_count_calibrates_ours() -> None:
    """It counts twice our size: its gap of 4,000 are 2,000 of ours, so round 0 and two rounds go."""
    found = cut(session(10, 1_000), refusal(gap=4_000, actual=20_200, limit=16_200), room=ROOM)
    assert (found.dropped_rounds, found.remaining) == (3, 8_000)


def test_what_stands_beside_the_messages_belongs_to_the_count() -> None:
    """10,100 and 9,900 beside them are refused at 20,000: a gap of 2,000 is a tenth of everything."""
    wide = Room(measure=characters, fixed_tokens=9_900)
    found = cut(session(10, 1_000), refusal(gap=2_000, actual=20_000, limit=18_000), room=wide)
    assert (found.dropped_rounds, found.remaining) == (3, 17_900)


@pytest.mark.parametrize(
    ("facts", "fits", "rounds"),
    [
        ({"actual": 20_200, "limit": 16_200}, None, 3),  # the gap is in the counts
        ({"gap": 4_000, "limit": 16_200}, None, 3),  # the count is limit + gap
        ({"gap": 4_000}, 16_200, 3),  # the limit is what we believe fits
        ({"gap": 2_000}, None, 3),  # nothing to put it in proportion: taken as ours
        ({"gap": 50_000}, None, 2),  # more than all of ours, and no proportion: an unknown gap, a fifth of 11 rounds
        ({"gap": 20_000, "actual": 20_000}, None, 2),  # a count that leaves nothing is nonsense, so is the gap
    ],
)
def test_the_numbers_may_come_in_parts(facts: dict[str, int], fits: int | None, rounds: int) -> None:
    found = cut(session(10, 1_000), refusal(**facts), room=Room(measure=characters, fits_tokens=fits))
    assert found.dropped_rounds == rounds


def test_the_newest_round_stays_whatever_the_gap() -> None:
    found = cut(session(3, 1_000), refusal(gap=9_900, actual=10_000, limit=100), room=ROOM)
    assert found.remaining_rounds == 1
    assert found.messages[1].blocks()[0]["text"] == "a" * 10
    assert found.in_place


# ------------------------------------------------------------------------------------------------------ an unknown gap


@pytest.mark.parametrize(("rounds", "dropped"), [(1, 1), (4, 1), (9, 2), (14, 3), (99, 20)])
def test_an_unknown_gap_costs_a_fifth_of_the_rounds(rounds: int, dropped: int) -> None:
    """`rounds` and round 0 of the same size."""
    found = cut(session(rounds, 1_000, first=1_000), refusal(), room=ROOM)
    assert found.dropped_rounds == dropped


def test_a_fifth_that_holds_almost_nothing_is_not_enough() -> None:
    """Round 0 is one of five rounds and 20 of 4,020 characters: a fifth of the size goes instead."""
    found = cut(session(4, 1_000, first=20), refusal(), room=ROOM)
    assert (found.dropped_rounds, found.remaining) == (2, 3_000)


def test_our_estimate_may_say_that_a_fifth_is_not_enough() -> None:
    found = cut(session(9, 1_000, first=1_000), refusal(), room=Room(measure=characters, fits_tokens=5_500))
    assert (found.dropped_rounds, found.remaining) == (5, 5_000)


def test_a_gap_that_is_a_lower_bound_is_a_minimum() -> None:
    nine = session(9, 1_000, first=1_000)
    low = cut(nine, refusal(gap=1, actual=10_000, limit=9_999, lower_bound=True), room=ROOM)
    high = cut(nine, refusal(gap=4_500, actual=10_000, limit=5_500, lower_bound=True), room=ROOM)
    assert (low.dropped_rounds, high.dropped_rounds) == (2, 5)


@pytest.mark.parametrize("gap", [0, -7])
def test_a_gap_of_nothing_is_an_unknown_one(gap: int) -> None:
    assert cut(session(9, 1_000, first=1_000), refusal(gap=gap), room=ROOM).dropped_rounds == 2


# ------------------------------------------------------------------------------------------- what is told about a cut


def test_what_was_dropped_is_told_exactly() -> None:
    messages = session(10, 1_000)
    found = cut(messages, refusal(gap=1_500, actual=10_100, limit=8_600), room=ROOM)
    gone = messages[:5]
    assert found.messages == (retry_marker(), *messages[5:])
    assert found.dropped == Dropped(3, 5, tokens.estimate_messages(gone))
    assert (found.first_seq, found.last_seq) == (1, 5)


def test_messages_without_a_place_have_no_range() -> None:
    found = cut([user(100), answer(1, 100)], refusal(gap=50, actual=200, limit=150), room=ROOM)
    assert (found.dropped_rounds, found.first_seq, found.last_seq) == (1, None, None)


# ---------------------------------------------------------------------------------------------------------- the marker


def test_the_marker_opens_a_list_that_would_begin_with_the_assistant() -> None:
    found = cut(session(4, 1_000), refusal(gap=100, actual=4_100, limit=4_000), room=ROOM)
    assert (found.messages[0].role, found.messages[0].is_meta) == ("user", True)
    assert found.messages[1].role == "assistant"


def test_no_marker_stands_before_a_user_message() -> None:
    """The giant is shortened where it stands, so the user's first message still opens the list."""
    found = cut([user(10), answer(1, 5_000)], refusal(gap=3_000, actual=5_010, limit=2_010), room=ROOM)
    assert found.messages[0] == user(10)
    assert RETRY_MARKER not in [message.content for message in found.messages]


def test_the_marker_never_piles_up() -> None:
    messages: tuple[Message, ...] = tuple(session(20, 1_000))
    for attempt in range(1, MAX_CUTS + 1):
        messages = cut(messages, refusal(), attempt=attempt, room=ROOM).messages
        assert sum(message.content == RETRY_MARKER for message in messages) == 1
        assert messages[0].content == RETRY_MARKER


def test_only_leading_markers_are_taken_away() -> None:
    lead = [BOUNDARY, retry_marker(), retry_marker()]
    later = [answer(1, 5), retry_marker()]
    assert without_marker([*lead, *later]) == (BOUNDARY, *later)
    typed = Message(role="user", content=RETRY_MARKER)  # somebody quotes it
    assert without_marker([typed]) == (typed,)


def test_the_markers_own_size_counts() -> None:
    """Ten and a marker of about a hundred: dropping the first round alone would make the request larger."""
    messages = [user(10), answer(1, 50), answer(2, 50), answer(3, 500)]
    plain = Room(measure=lambda message: len(str(message.content)))
    found = cut(messages, refusal(gap=10, actual=610, limit=600), room=plain)
    assert found.remaining == sum(len(str(message.content)) for message in found.messages)
    assert found.remaining <= 600
    assert found.dropped_rounds == 3


# -------------------------------------------------------------------------------------------------- an earlier summary


def test_an_earlier_summary_stays_and_the_rounds_behind_it_go() -> None:
    messages = [BOUNDARY, SUMMARY, *session(10, 1_000)]
    found = cut(messages, refusal(gap=1_500, actual=10_600, limit=9_100), room=ROOM)
    assert found.messages == (BOUNDARY, SUMMARY, *messages[7:])
    assert found.dropped_rounds == 3


def test_the_marker_follows_a_boundary_without_a_summary() -> None:
    found = cut([BOUNDARY, *session(4, 1_000)], refusal(gap=100, actual=4_100, limit=4_000), room=ROOM)
    assert [message.role for message in found.messages[:3]] == ["system", "user", "assistant"]


def test_an_earlier_summary_is_shortened_when_nothing_else_is_left() -> None:
    long = Message(role="user", content="s" * 50_000, is_compact_summary=True)
    found = cut([long, user(100), answer(1, 100)], refusal(gap=40_000, actual=50_200, limit=10_200), room=ROOM)
    assert found.messages[0].is_compact_summary
    assert found.remaining <= 10_200


def test_a_summary_alone_is_shortened_too() -> None:
    long = Message(role="user", content="s" * 50_000, is_compact_summary=True)
    found = cut([long], refusal(), room=ROOM)
    assert (found.dropped_rounds, found.remaining_rounds) == (0, 0)
    assert found.remaining <= 40_000


# --------------------------------------------------------------------------------------------------------- giant rounds


@pytest.mark.parametrize("place", [0, 3, 9])
def test_a_round_that_could_not_be_sent_alone_is_shortened_and_the_others_stay(place: int) -> None:
    rounds = [tool_round(number, 30_000 if number == place else 1_000) for number in range(10)]
    messages = [user(100), *(message for one in rounds for message in one)]  # 39,100
    found = cut(messages, refusal(gap=19_100, actual=39_100, limit=20_000), room=ROOM)
    assert (found.dropped_rounds, found.shortened_messages) == (0, 1)
    assert found.remaining <= 20_000
    assert found.remaining > 17_000  # five per cent under the target, and the marker's rounding
    assert found.dropped_tokens > 0
    assert found.left_out_characters >= 19_100
    assert [message.role for message in found.messages] == [message.role for message in messages]


def test_a_giant_gets_half_the_room_when_the_others_need_more() -> None:
    messages = [*session(40, 1_000), *tool_round(41, 50_000)]  # 90,100
    found = cut(messages, refusal(gap=70_100, actual=90_100, limit=20_000), room=ROOM)
    assert found.dropped_rounds == 31  # ten of forty stay: half of 20,000
    assert found.shortened_messages == 1
    assert found.remaining <= 20_000


def test_many_parallel_results_are_cut_to_one_size() -> None:
    calls = [{"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {}} for number in range(20)]
    results = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "r" * 12_000} for number in range(20)]
    messages = [user(100), Message(role="assistant", content=calls), Message(role="user", content=results)]
    found = cut(messages, refusal(gap=50_000, actual=240_100, limit=190_100), room=ROOM)
    sizes = {len(block["content"]) for block in found.messages[2].blocks()}
    assert max(sizes) - min(sizes) < 10
    assert found.remaining <= 190_100


def test_a_giant_that_cannot_be_cut_is_dropped_when_it_is_old() -> None:
    opaque = {"type": "hologram"}

    def weight(message: Message) -> int:
        return 50_000 if message.content == [opaque] else characters(message)

    messages = [user(100), Message(role="assistant", content=[opaque], api_message_id="m0"), *session(3, 1_000)]
    found = cut(messages, refusal(gap=30_000, actual=53_200, limit=23_200), room=Room(measure=weight))
    assert found.dropped_rounds == 2
    assert found.remaining == 3_000


def test_nothing_left_to_cut_is_the_refusal_itself() -> None:
    refused = refusal(gap=50, actual=110, limit=60)
    with pytest.raises(PromptTooLong) as caught:
        cut([*tool_round(1, 110)], refused, room=ROOM)
    assert caught.value is refused


@pytest.mark.parametrize("messages", [[], [BOUNDARY], [retry_marker()]])
def test_an_empty_request_cannot_be_cut(messages: list[Message]) -> None:
    with pytest.raises(PromptTooLong):
        cut(messages, refusal(), room=ROOM)


def test_the_fourth_cut_is_refused() -> None:
    refused = refusal(gap=1, actual=10_100, limit=10_099)
    with pytest.raises(PromptTooLong) as caught:
        cut(session(10, 1_000), refused, attempt=MAX_CUTS + 1, room=ROOM)
    assert caught.value is refused


# -------------------------------------------------------------------------------------------------------- bytes, media


def picture(size: int) -> Message:
    source = {"type": "base64", "media_type": "image/png", "data": "A" * size}
    return Message(role="user", content=[{"type": "text", "text": "Look."}, {"type": "image", "source": source}])


SENT = Room(measure=tokens.estimate_message, measure_bytes=room.sent_bytes)
PICTURES = [user(100), *(picture(10_000) for _ in range(10)), *session(5, 1_000)]


def test_a_byte_limit_takes_the_media_and_no_history() -> None:
    found = cut(PICTURES, refusal(unit="bytes"), room=SENT)
    assert (found.media_removed, found.dropped_rounds, found.in_place) == (10, 0, False)
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


# -------------------------------------------------------------------------------------------------------- less output


@pytest.mark.parametrize(
    ("actual", "limit", "gap", "max_tokens", "lower"),
    [
        (188_000, 200_000, 8_000, 20_000, 12_000),
        (192_000, 200_000, 12_000, 20_000, 8_000),
        (192_001, 200_000, 12_001, 20_000, None),  # under 8,000 of room: history has to go
        (143_291, 200_000, 7_291, 20_000, 12_709),  # the gateway counted 64,000 of output for our 20,000
        (143_291, 200_000, 12_001, 20_000, None),
        (188_000, 200_000, None, 20_000, None),
        (None, 200_000, 1, 20_000, None),
        (188_000, None, 1, 20_000, None),
    ],
)
def test_less_output_where_the_input_leaves_room(
    actual: int | None, limit: int | None, gap: int | None, max_tokens: int, lower: int | None
) -> None:
    refused = refusal(actual=actual, limit=limit, gap=gap, output_first=True)
    assert lower_output(refused, max_tokens) == lower


def test_output_is_lowered_only_where_the_refusal_says_so() -> None:
    assert lower_output(refusal(actual=188_000, limit=200_000, gap=8_000), 20_000) is None


# ----------------------------------------------------------------------------------------------------- for any history


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
rooms = st.sampled_from([ROOM, Room(), Room(fits_tokens=2_000, fixed_tokens=500), SENT])


def _ids(messages: tuple[Message, ...] | list[Message], kind: str, key: str) -> set[str]:
    return {block[key] for message in messages for block in message.blocks() if block["type"] == kind}


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


@given(histories(), refusals, rooms)
def test_a_cut_made_again_is_the_same(messages: list[Message], refused: PromptTooLong, around: Room) -> None:
    """The pipeline reloads the history for each call and replays the cuts."""

    def outcome() -> truncation.Cut | None:
        try:
            return cut(messages, refused, room=around)
        except PromptTooLong:
            return None

    assert outcome() == outcome()


@given(histories(), st.integers(1, 30_000))
def test_a_planned_cut_fits_or_is_as_small_as_it_gets(messages: list[Message], fits: int) -> None:
    try:
        found = plan_cut(messages, fits, room=ROOM)
    except PromptTooLong:
        return
    if found is not None and found.remaining > fits:
        assert found.remaining_rounds == 1 or found.dropped_rounds == found.remaining_rounds == 0
