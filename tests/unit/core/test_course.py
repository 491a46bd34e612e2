"""The budgets of the calls for one summary."""

from __future__ import annotations

import pytest

from compaction.core.course import Course, after_bad_reply, after_output_limit, after_refusal
from compaction.errors import ApiError, NoSummary, PromptTooLong, Refusal, RequestTooLarge, SummaryTruncated

FIRST = Course(kind="shared_prefix", model="claude-opus-5-5", max_output_tokens=20_000)


def test_a_refusal_leads_to_a_cut_of_a_fresh_request() -> None:
    refusal = PromptTooLong(gap=12_230, actual=212_230, limit=200_000)
    following = after_refusal(FIRST, refusal)
    assert following.refusals == (refusal,)
    assert (following.kind, following.ptl_attempts) == ("fresh", 1)


def test_the_fourth_refusal_is_final() -> None:
    course = FIRST
    for _ in range(3):
        course = after_refusal(course, PromptTooLong(gap=1_000, actual=201_000, limit=200_000))
    last = PromptTooLong(gap=500)
    with pytest.raises(PromptTooLong) as raised:
        after_refusal(course, last)
    assert raised.value is last


def test_less_output_is_asked_for_where_the_input_alone_fits() -> None:
    """187,291 of input and 20,000 of output against 200,000: 12,709 are left, over the 8,000 that a summary needs."""
    refusal = PromptTooLong(gap=7_291, actual=187_291, limit=200_000, output_first=True)
    following = after_refusal(FIRST, refusal)
    assert (following.max_output_tokens, following.lowered, following.refusals) == (12_709, 1, ())
    assert following.ptl_attempts == 1


def test_a_count_taken_beforehand_is_a_cut_but_no_retry() -> None:
    course = Course(kind="fresh", model="m", max_output_tokens=20_000, counted_tokens=900_000)
    assert course.ptl_attempts == 0


def test_a_smaller_output_limit_of_the_model_is_taken() -> None:
    following = after_output_limit(FIRST, ApiError(output_limit_tokens=8_192))
    assert following.max_output_tokens == 8_192
    with pytest.raises(ApiError):
        after_output_limit(following, ApiError(output_limit_tokens=4_096))


@pytest.mark.parametrize("limit", [None, 0, 20_000, 64_000])
def test_any_other_refusal_of_the_api_is_final(limit: int | None) -> None:
    with pytest.raises(ApiError):
        after_output_limit(FIRST, ApiError(output_limit_tokens=limit))


def test_bytes_that_three_cuts_could_not_save_are_a_request_too_large() -> None:
    course = FIRST
    for _ in range(3):
        course = after_refusal(course, PromptTooLong(unit="bytes", gap=9, actual=99, limit=90))
    with pytest.raises(RequestTooLarge):
        after_refusal(course, PromptTooLong(unit="bytes"))


@pytest.mark.parametrize("problem", [NoSummary(), SummaryTruncated()])
def test_a_bad_reply_is_asked_again_once_with_a_fresh_request(problem: NoSummary | SummaryTruncated) -> None:
    following = after_bad_reply(FIRST, problem)
    assert following.kind == "fresh"
    with pytest.raises(type(problem)):
        after_bad_reply(following, problem)


def test_a_summary_that_broke_off_is_asked_for_shorter() -> None:
    assert after_bad_reply(FIRST, SummaryTruncated()).shorter is True


def test_different_bad_replies_have_their_own_tries() -> None:
    following = after_bad_reply(after_bad_reply(FIRST, NoSummary()), SummaryTruncated())
    assert (following.asked_again, following.shorter) == (True, True)


def test_a_refusal_of_the_model_goes_to_the_fallback_model_once() -> None:
    following = after_bad_reply(FIRST, Refusal(), "claude-haiku-4-5")
    assert (following.model, following.other_model) == ("claude-haiku-4-5", True)
    with pytest.raises(Refusal):
        after_bad_reply(following, Refusal(), "claude-haiku-4-5")


def test_without_a_fallback_model_a_refusal_is_final() -> None:
    with pytest.raises(Refusal):
        after_bad_reply(FIRST, Refusal())
