"""Replies judged: what counts as a summary, what of it is kept, and how it stands in the history."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import sections, summary
from compaction.core.messages import Usage
from compaction.errors import ApiError, JobError, NoSummary, Refusal, SummaryTruncated
from compaction.ports import SummaryReply


def nine(**bodies: str) -> str:
    """Nine sections; `s3="…"` sets the body of the third."""
    lines = []
    for number, title in enumerate(sections.TITLES, 1):
        lines.append(f"{number}. {title}:\n   {bodies.get(f's{number}', 'told above')}")
    return "\n".join(lines)


def reply(text: str, stop_reason: str | None = "end_turn") -> SummaryReply:
    return SummaryReply(text=text, stop_reason=stop_reason, usage=Usage(), model="model-x", request_id="req_1")


def text_of(text: str) -> str:
    return summary.validate(reply(text)).text


GOOD = f"<analysis>\nSCRATCH\n</analysis>\n<summary>\n{nine(s8='Checking the logs.')}\n</summary>"


def test_the_summary_is_what_stands_between_its_tags() -> None:
    valid = summary.validate(reply(GOOD))
    assert valid == summary.Summary(nine(s8="Checking the logs."), had_tags=True, sections_found=tuple(range(1, 10)))


@pytest.mark.parametrize(
    ("stop_reason", "error"),
    [
        ("max_tokens", SummaryTruncated),
        ("model_context_window_exceeded", SummaryTruncated),
        ("stop_sequence", SummaryTruncated),
        ("refusal", Refusal),
        ("tool_use", NoSummary),
        ("pause_turn", NoSummary),
        ("compaction", NoSummary),
        ("a reason of next year", NoSummary),
    ],
)
def test_only_a_finished_turn_counts_however_good_its_text(stop_reason: str, error: type[JobError]) -> None:
    with pytest.raises(error) as caught:
        summary.validate(reply(GOOD, stop_reason))
    assert stop_reason not in caught.value.message
    assert not caught.value.retryable


def test_a_stream_without_a_stop_reason_broke_off_and_is_tried_again() -> None:
    with pytest.raises(ApiError) as caught:
        summary.validate(reply(GOOD, None))
    assert caught.value.retryable
    assert caught.value.request_id == "req_1"


@pytest.mark.parametrize("text", ["", " \n\n\t ", "\x00", "\n"])
def test_blank_text_is_no_summary(text: str) -> None:
    with pytest.raises(NoSummary):
        summary.validate(reply(text))


@pytest.mark.parametrize(
    "text",
    [
        "Sure, the next thing to run is: make deploy",
        "1. Run the tests.\n2. Current Work:\n3. Pending Tasks: deploy",
        "<analysis>\nThe user wants a deployment.\n</analysis>\nDone, I deployed it.",
        "<analysis>\nThinking about all of it and never coming to an end",
        "</summary>",
        "</analysis>",
    ],
)
def test_a_model_that_went_on_with_the_task_wrote_no_summary(text: str) -> None:
    with pytest.raises(NoSummary) as caught:
        summary.validate(reply(text))
    assert "deploy" not in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>{'name': 'Read', 'arguments': {'path': 'a'}}</tool_call>",
        '<function_calls>\n<invoke name="Read">\n</invoke>\n</function_calls>',
        '{"name": "Read", "arguments": {"path": "a.py"}}',
        '```json\n[{"type": "function", "function": "Read", "id": 1}]\n```',
        "<|tool_calls_begin|>Read",
        "[TOOL_CALLS] Read",
    ],
)
def test_a_tool_call_as_text_is_no_summary_with_or_without_tags(text: str) -> None:
    for whole in (text, f"<summary>\n{text}\n</summary>"):
        with pytest.raises(NoSummary):
            summary.validate(reply(whole))


@pytest.mark.parametrize("text", ['{"broken": the release is not out yet', '{"goal": "ship the release by Friday"}'])
def test_other_json_between_tags_is_judged_by_what_it_says(text: str) -> None:
    assert text_of(f"<summary>{text}</summary>") == text


@pytest.mark.parametrize("text", ["[]", "{}", '["a"]', '{"name": "x"}'])
def test_json_that_says_nothing_is_a_placeholder(text: str) -> None:
    with pytest.raises(NoSummary):
        summary.validate(reply(f"<summary>{text}</summary>"))


def test_call_markup_inside_a_real_summary_is_quoted_and_stays() -> None:
    body = nine(s3="the parser of\n<tool_call> was fixed")
    assert text_of(f"<summary>\n{body}\n</summary>") == body


def test_call_markup_after_a_summary_without_tags_spoils_it() -> None:
    with pytest.raises(NoSummary):
        summary.validate(reply(f"{nine()}\n<function_calls>\n<invoke name='Read'>"))


def test_call_markup_in_a_code_fence_is_a_quotation() -> None:
    body = nine(s3="kept:\n```\n<tool_call>\n```\nand\n```xml\n<invoke>\n```")
    assert text_of(body) == body


def test_json_too_long_for_a_call_is_not_read_as_one() -> None:
    text = '{"name": "x", "arguments": "' + "a" * summary.MAX_CALL_CHARS + '"}'
    assert text_of(f"<summary>{text}</summary>") == text


# ---------------------------------------------------------------------------------------------------------- analysis


@pytest.mark.parametrize(
    "opening",
    [
        "<analysis>\nSCRATCH\n</analysis>\n",
        "<analysis>\nSCRATCH\n</think>\n",  # closed by the wrong tag
        "<analysis>\nSCRATCH\n\n",  # never closed
        "<ANALYSIS>SCRATCH</Analysis>",
        "Let me look at it.\n<analysis>SCRATCH</analysis>\nHere it is:\n",
        "SCRATCH\n</analysis>\n",  # the opening tag got lost
        "<analysis>\nSCRATCH: it ends with <summary> tags\n</analysis>\n",  # the tag named in the draft
        "<analysis>\nSCRATCH: after </analysis> comes <summary>\n</analysis>\n",
        "<analysis>\nSCRATCH: then <summary> follows\n</thinking>\n",
        "",
    ],
)
def test_the_analysis_is_left_out_however_it_is_closed(opening: str) -> None:
    body = nine(s8="KEEP THIS")
    assert text_of(f"{opening}<summary>\n{body}\n</summary>") == body


def test_an_analysis_inside_the_summary_is_left_out() -> None:
    body = nine()
    assert text_of(f"<summary>\n<analysis>\nSCRATCH\n</analysis>\n{body}\n</summary>") == body
    assert text_of(f"<summary>\n<analysis>\nSCRATCH, never closed\n{body}\n</summary>") == body


def test_a_draft_of_the_sections_in_an_open_analysis_is_left_out() -> None:
    draft, body = nine(s1="SCRATCH"), nine(s1="the real one")
    assert text_of(f"<analysis>\n{draft}\n\n{body}") == body


def test_an_analysis_after_the_summary_is_left_out() -> None:
    assert text_of(f"<summary>\n{nine()}\n</summary>\n<analysis>\nSCRATCH\n</analysis>") == nine()


def test_a_summary_before_its_stray_closing_analysis_tag_is_found() -> None:
    assert text_of(f"</summary>\n<summary>\n{nine()}\n</summary>\n</analysis>") == nine()
    assert text_of(f"</analysis> first\n<summary>\n{nine()}\n</summary>") == nine()


# -------------------------------------------------------------------------------------------------------------- tags


def test_literal_tags_inside_the_summary_survive() -> None:
    body = nine(s3="README uses `<details><summary>Logs</summary>text</details>` blocks", s9="TAIL")
    assert text_of(f"<analysis>x</analysis>\n<summary>\n{body}\n</summary>") == body
    assert text_of(f"<analysis>x</analysis>\n<summary>\n{body}\n</summary>\n\nIs there anything else?") == body


@pytest.mark.parametrize(
    "literal", ["`</summary>`", "`<summary>`", "`<summary>x</summary>`", "`<analysis>`", "`</analysis>`"]
)
@pytest.mark.parametrize("place", ["s2", "s9"])
def test_one_literal_tag_does_not_end_or_begin_the_summary(literal: str, place: str) -> None:
    body = nine(**{place: f"the page shows {literal} somewhere"})
    assert text_of(f"<summary>\n{body}\n</summary>") == body


def test_an_unclosed_summary_counts_when_it_reached_its_last_section() -> None:
    valid = summary.validate(reply(f"<analysis>x</analysis>\n<summary>\n{nine(s9='Go on.')}"))
    assert (valid.text, valid.had_tags) == (nine(s9="Go on."), True)


@pytest.mark.parametrize("end", ["\n</", "\n</summ", "\n</summary", "\n</summary>"])
def test_no_piece_of_a_closing_tag_stays(end: str) -> None:
    assert text_of(f"<summary>\n{nine()}{end}") == nine()
    assert text_of(f"{nine()}{end}") == nine()


def test_an_unclosed_summary_with_a_literal_pair_is_kept_to_its_end() -> None:
    body = nine(s3="`<details><summary>Logs</summary>text</details>`", s9="TAIL")
    assert text_of(f"<summary>\n{body}") == body


def test_an_unclosed_summary_with_a_literal_pair_in_its_last_section_is_kept_to_its_end() -> None:
    body = nine(s9="fold it: `<summary>Logs</summary>` and then TAIL")
    assert text_of(f"<summary>\n{body}") == body


def test_an_unclosed_summary_that_breaks_off_before_its_last_section_is_refused() -> None:
    with pytest.raises(NoSummary):
        summary.validate(reply(f"<summary>\n{nine().partition('9. ')[0]}"))


def test_tags_within_tags_are_taken_off() -> None:
    assert text_of(f"<summary>\n<summary>\n{nine()}\n</summary>\n</summary>") == nine()


def test_a_summary_that_opens_and_ends_with_literal_tags_keeps_its_text() -> None:
    text = "<summary> is the tag that the page lacked; it now has <summary>Logs</summary> and more"
    assert text_of(f"<summary>{text}</summary>") == text


def test_text_around_the_tags_is_left_out() -> None:
    assert text_of(f"Here you are:\n<summary>{nine()}</summary>\nShall I go on?") == nine()


# ------------------------------------------------------------------------------------------------------- without tags


@pytest.mark.parametrize("count", [5, 9])
def test_without_tags_five_of_the_nine_sections_are_enough(count: int) -> None:
    lines = [f"{number}. {title}: done" for number, title in enumerate(sections.TITLES[:count], 1)]
    valid = summary.validate(reply("Here it is.\n" + "\n".join(lines)))
    assert valid == summary.Summary("\n".join(lines), had_tags=False, sections_found=tuple(range(1, count + 1)))


def test_without_tags_four_sections_are_not_enough() -> None:
    lines = [f"{number}. {title}: done" for number, title in enumerate(sections.TITLES[:4], 1)]
    with pytest.raises(NoSummary):
        summary.validate(reply("\n".join(lines * 3)))


def test_without_tags_the_first_section_may_be_missing() -> None:
    body = nine().partition("2. ")[2]
    assert text_of(f"So:\n2. {body}") == f"2. {body}"


def test_a_summary_in_another_language_under_the_fixed_headings_is_good() -> None:
    body = nine(s1="用户要求迁移结算模块。", s8="正在检查最后一个文件。")
    assert text_of(f"<analysis>\n按时间顺序检查。\n</analysis>\n<summary>\n{body}\n</summary>") == body
    assert text_of(body) == body


# --------------------------------------------------------------------------------------------------------- what it says


@pytest.mark.parametrize(
    "text",
    [
        "...",
        "…",
        "[Your summary here]",
        "<the summary>",
        "Summary goes here.",
        "No summary available.",
        "Conversation summarized.",
        "N/A",
        "---\n\n***",
        "Hi there.",
        nine(**{f"s{number}": "None." for number in range(1, 10)}),
        nine(**{f"s{number}": "[to be filled in by the model]" for number in range(1, 10)}),
        nine(**{f"s{number}": "" for number in range(1, 10)}),
    ],
)
def test_a_placeholder_is_no_summary(text: str) -> None:
    with pytest.raises(NoSummary):
        summary.validate(reply(f"<summary>\n{text}\n</summary>"))


def test_a_short_summary_of_a_short_session_counts() -> None:
    assert text_of("<summary>The user asked for the time; it was told.</summary>").startswith("The user")


def test_one_section_that_says_something_is_enough() -> None:
    body = nine(**{f"s{number}": "None." for number in range(2, 10)}, s1="Port the parser to Rust, keep its tests.")
    assert text_of(f"<summary>{body}</summary>") == body


def test_a_long_line_in_brackets_is_no_placeholder() -> None:
    text = f"[{'word ' * 60}]"
    assert text_of(f"<summary>{text}</summary>") == text


def test_blank_lines_are_folded_to_one() -> None:
    text = nine(s3="a\n\n\n\n   b  \r\n\r\n \t\r\n\r\nc")
    assert "a\n\n   b\n\nc" in text_of(f"<summary>\n\n\n{text}\n\n\n\n</summary>")


def test_characters_that_no_store_can_hold_are_replaced() -> None:
    text = text_of(f"<summary>{nine(s1='half ' + chr(0xD83D) + ' and nul ' + chr(0))}</summary>")
    assert text.encode("utf-8")
    assert "\x00" not in text


@settings(deadline=None)  # shared machines stall
@given(st.text(alphabet="<>/ \nsumaryl1.9:x", max_size=200), st.booleans())
def test_any_reply_is_a_summary_or_a_typed_failure(noise: str, before: bool) -> None:
    """Hostile text never breaks the judge, and an accepted summary is folded and stripped."""
    text = f"{noise}{GOOD}" if before else f"{GOOD}{noise}"
    try:
        valid = summary.validate(reply(text))
    except NoSummary:
        return
    assert valid.text == valid.text.strip()
    assert "\n\n\n" not in valid.text


@pytest.mark.parametrize(
    "piece", [" ", "\n", "<", "<summary>", "</analysis>", "```\n", "1. ", "#", "*", "[", "{", "\t\n"]
)
def test_a_megabyte_of_one_piece_is_judged_in_linear_time(piece: str) -> None:
    """No assertion on time: a quadratic step here would run into the suite's own limit."""
    noise = piece * (1_000_000 // len(piece))
    for text in (noise, f"<summary>{noise}", f"<summary>{noise}{nine()}</summary>"):
        try:
            summary.validate(reply(text))
        except NoSummary:
            continue
