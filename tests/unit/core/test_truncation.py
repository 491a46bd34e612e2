"""The head cut, from hand calculation with a measure of one per character, and its promises for any history."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.core import tokens
from compaction.core.messages import BOUNDARY_KIND, Message
from compaction.core.results import Dropped
from compaction.core.room import Room
from compaction.core.truncation import MAX_CUTS, RETRY_MARKER, cut, lower_output, retry_marker, without_marker
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
    assert found.shortened_messages == 0


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
    assert found.shortened_messages > 0


# ------------------------------------------------------------------------------------------------------ an unknown gap


@pytest.mark.parametrize(("rounds", "dropped"), [(1, 1), (4, 1), (9, 2), (14, 3), (99, 20)])
def test_an_unknown_gap_costs_a_fifth_of_the_rounds(rounds: int, dropped: int) -> None:
    """`rounds` and round 0 of the same size."""
    found = cut(session(rounds, 1_000, first=1_000), refusal(), room=ROOM)
    assert found.dropped_rounds == dropped


@pytest.mark.parametrize(("attempt", "dropped"), [(1, 4), (2, 8), (3, 12)])
def test_each_further_cut_of_an_unknown_gap_takes_a_fifth_more(attempt: int, dropped: int) -> None:
    """Of 20 rounds: 20, 40 and 60 percent of what is left; three fifths in a row often lead nowhere."""
    found = cut(session(19, 1_000, first=1_000), refusal(), attempt=attempt, room=ROOM)
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
