from __future__ import annotations

import pytest

from compaction.cli import result_page
from compaction.cli.result_page import bar
from compaction.client import Result
from compaction.core.summary import compact_text

SUMMARY = "1. Primary Request and Intent:\n   Fix [the] bug.\n\n2. Key Technical Concepts:\n   SQL\x1b[2J"


def result(**changes: object) -> Result:
    made: Result = {
        "job_id": "job-1",
        "session_id": "s1",
        "strategy": "extractive",
        "boundary": {},
        "messages": [
            {"role": "system", "content": "", "metadata": {"kind": "compact_boundary"}},
            {"role": "user", "content": compact_text(SUMMARY), "is_compact_summary": True},
        ],
        "api_messages": [{"role": "user", "content": "…"}],
        "attachments": [],
        "pre_tokens": 170_000,
        "post_tokens": 8_500,
        "usage": {},
        "cost_usd": None,
        "ptl_attempts": 0,
        "dropped": {"rounds": 0, "messages": 0, "tokens": 0},
        "context_management": None,
        "covers_through_seq": 2,
        "prefix_hash": "",
        "degraded": True,
        "hook_results": [],
        "created_at": "2026-01-01T00:00:00Z",
    }
    made.update(changes)  # type: ignore[typeddict-item]  # a test knows its fields
    return made


@pytest.mark.parametrize(
    ("tokens", "of_tokens", "drawn"),
    [
        (0, 100, ""),
        (100, 100, "████████"),
        (50, 100, "████"),
        (1, 100_000, "▏"),
        (45, 100, "███▋"),
        (500, 100, "████████"),
        (5, 0, "▏"),
    ],
)
def test_a_bar_shows_the_share_in_eighths_of_a_character(tokens: int, of_tokens: int, drawn: str) -> None:
    assert bar(tokens, of_tokens, 8) == drawn


def test_the_page_shows_sizes_strategy_and_the_whole_summary(capsys: pytest.CaptureFixture[str]) -> None:
    result_page.print_result(result())
    page = capsys.readouterr().out
    assert "170,000" in page
    assert "8,500" in page
    assert "−95 %" in page
    assert "extractive, made without a model" in page
    assert "  1. Primary Request and Intent:\n     Fix [the] bug.\n" in page
    assert "api_messages  1 ready to send: GET /v1/sessions/s1/messages?view=api" in page
    assert "\x1b" not in page


def test_sizes_are_compared_by_one_estimator(capsys: pytest.CaptureFixture[str]) -> None:
    """The provider counted 25,000 tokens, most of them not the conversation's; our estimate of it was 2,000."""
    marker = {"role": "system", "content": "", "metadata": {"estimated_tokens": 2_000}}
    result_page.print_result(result(pre_tokens=25_000, post_tokens=1_500, boundary=marker))
    page = capsys.readouterr().out
    assert "Tokens, estimated" in page
    assert "−25 %" in page
    assert "25,000" not in page


def test_what_stands_in_no_summary_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    result_page.print_result(result(dropped={"rounds": 2, "messages": 9, "tokens": 12_000}))
    assert "9 messages (12,000 tokens) did not fit" in capsys.readouterr().out


def test_a_model_that_fell_back_is_named_honestly(capsys: pytest.CaptureFixture[str]) -> None:
    result_page.print_result(result(strategy="fresh", degraded=True))
    assert "extractive, made without a model" in capsys.readouterr().out


def test_a_result_without_a_summary_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    result_page.print_result(result(strategy="microcompact", messages=[], degraded=False))
    assert "no summary" in capsys.readouterr().out
