"""What usage tells: the last request's size, and how far the estimate is off."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compaction.core.messages import BOUNDARY_KIND, Message, Usage
from compaction.core.usage import countable, last_answer, learned_ratio
from tests.unit.core.samples import assistant, result, text, usage, use, user


def thousand_each(messages: Sequence[Message]) -> int:
    return 1_000 * len(messages)


def boundary(**facts: object) -> Message:
    return Message(role="system", content="", metadata={"kind": BOUNDARY_KIND, **facts})


def counted(*live: Message) -> list[int]:
    """The places of the messages whose usage counts."""
    found = countable(live)
    return [place for place, message in enumerate(live) if id(message) in found]


def test_without_a_boundary_all_usage_counts() -> None:
    assert counted() == []
    assert counted(user("a"), assistant("b")) == [0, 1]


def test_after_our_own_boundary_only_newer_stored_messages_count() -> None:
    live = (
        boundary(covers_through_seq=7),
        user("summary", is_compact_summary=True),
        assistant("kept", usage=usage(150_000)),
        assistant("kept with its seq", seq=7),
        assistant("new", seq=8),
    )
    assert counted(*live) == [4]


def test_after_a_foreign_boundary_the_preserved_segment_does_not_count() -> None:
    marker = boundary(preserved_segment={"head_uuid": "k-1", "tail_uuid": "k-2"})
    assert counted(marker, user("a", uuid="k-1"), assistant("b", uuid="k-2"), assistant("c", uuid="n-1")) == [3]


@pytest.mark.parametrize("segment", [None, "odd", {}, {"tail_uuid": "unknown"}])
def test_a_boundary_without_a_segment_starts_what_counts(segment: object) -> None:
    assert counted(boundary(preserved_segment=segment), user("a"), assistant("b")) == [0, 1, 2]
    assert counted(Message(role="system", content="note"), assistant("b")) == [0, 1]


def anchored(*messages: Message) -> tuple[int, list[int], list[int]] | None:
    """Prompt tokens, places of the answer's fragments, places of what its usage does not count."""
    anchor = last_answer(messages, {id(message) for message in messages})
    if anchor is None:
        return None
    places = {id(message): place for place, message in enumerate(messages)}
    return (
        anchor.prompt_tokens,
        [places[id(message)] for message in anchor.answer],
        [places[id(message)] for message in anchor.since],
    )


def test_the_last_answer_with_usage_is_the_anchor() -> None:
    two_answers = [user("a"), assistant("b", usage=usage(100)), user("c"), assistant("d", usage=usage(200)), user("e")]
    assert anchored(*two_answers) == (200, [3], [4])


def test_no_usage_is_no_anchor() -> None:
    assert anchored(user("a"), assistant("b"), assistant("c", usage=Usage())) is None
    assert last_answer([assistant("b", usage=usage(100))], set()) is None


def test_all_fragments_of_an_answer_are_the_answer_and_results_between_them_are_not_counted() -> None:
    fields = {"api_message_id": "m2", "usage": usage(500)}
    assert anchored(
        user("go"),
        assistant(use("t0"), api_message_id="m1"),
        user(result("t0")),
        assistant("a", **fields),
        assistant(use("t1"), **fields),
        user(result("t1")),
        assistant(use("t2"), **fields),
        user(result("t2")),
    ) == (500, [3, 4, 6], [5, 7])


def test_a_history_may_begin_with_fragments() -> None:
    assert anchored(assistant("a", api_message_id="m1"), assistant("b", api_message_id="m1", usage=usage(500))) == (
        500, [0, 1], [],
    )  # fmt: skip


def test_a_fragment_behind_the_last_usage_is_not_counted_by_it() -> None:
    assert anchored(
        user("go"), assistant("a", api_message_id="m1", usage=usage(500)), assistant("b", api_message_id="m1")
    ) == (500, [1], [2])


def test_words_of_the_user_end_an_answer() -> None:
    assert anchored(
        assistant("a", api_message_id="same"), user("next"), assistant("b", api_message_id="same", usage=usage(500))
    ) == (500, [2], [])


def test_another_prompt_size_is_another_answer() -> None:
    assert anchored(
        assistant(use("t1"), api_message_id="same", usage=usage(400)),
        user(result("t1")),
        assistant("b", api_message_id="same", usage=usage(500)),
    ) == (500, [2], [])


def test_without_ids_only_neighbours_are_fragments() -> None:
    assert anchored(assistant(use("t1")), user(result("t1")), assistant("b"), assistant("c", usage=usage(500))) == (
        500, [2, 3], [],
    )  # fmt: skip


def growing(*prompts: int) -> list[Message]:
    return [message for prompt in prompts for message in (assistant("x", usage=usage(prompt)), user(text("y")))]


def test_the_ratio_is_real_growth_over_estimated_growth() -> None:
    # each step is two messages, estimated at 2,000; the prompts grow by 3,000 and 5,000
    assert learned_ratio(growing(10_000, 13_000, 18_000), thousand_each) == 2.0


def test_little_evidence_gives_no_ratio() -> None:
    assert learned_ratio([], thousand_each) == 1.0
    assert learned_ratio(growing(10_000, 13_000), len) == 1.0


@pytest.mark.parametrize(("grown", "ratio"), [(400, 0.8), (15_000, 4.0)])
def test_the_ratio_is_bounded(grown: int, ratio: float) -> None:
    assert learned_ratio(growing(10_000, 10_000 + grown, 10_000 + 2 * grown), thousand_each) == ratio


@pytest.mark.parametrize("jump", [-5_000, 20_000, 100])
def test_steps_that_were_no_plain_growth_do_not_count(jump: int) -> None:
    prompts = [10_000, 14_000, 18_000, 18_000 + jump]
    assert learned_ratio(growing(*prompts), thousand_each) == 2.0


def test_a_step_over_a_summary_does_not_count() -> None:
    messages = [
        *growing(10_000, 14_000),
        assistant("z", usage=usage(18_000)),
        user("summary", is_compact_summary=True),
        assistant("x", usage=usage(18_500)),
    ]
    assert learned_ratio(messages, thousand_each) == 2.0


def test_only_the_newest_steps_count() -> None:
    old = growing(*range(10_000, 10_000 + 50 * 2_000, 2_000))  # ratio 1
    new = growing(*range(200_000, 200_000 + 65 * 6_000, 6_000))  # ratio 3, 64 steps
    assert learned_ratio([*old, *new], thousand_each) == 3.0


def test_repeated_usage_of_fragments_is_one_answer() -> None:
    fragments = [assistant("x", usage=usage(10_000)), assistant("x", usage=usage(10_000)), user("y")]
    assert learned_ratio([*fragments, assistant("x", usage=usage(16_000))], thousand_each) == 2.0
