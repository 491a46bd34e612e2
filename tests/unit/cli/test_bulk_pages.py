from __future__ import annotations

from typing import cast

import pytest

from compaction.cli import bulk_pages
from compaction.client.bulk import BulkRun


def run(**fields: object) -> BulkRun:
    facts: dict[str, object] = {
        "state": "running",
        "sessions": {"found": 1_000, "skipped": 0},
        "request_counts": {"processing": 750},
        "tokens": {"used": 12_345},
        "cost": {"spent_usd": 1.5},
    }
    return cast("BulkRun", facts | fields)


def test_progress_tells_sessions_tokens_money_and_how_long_it_may_take() -> None:
    """By hand: 250 of 1,000 in 60 s; the other 750 take three times as long."""
    step, share, words = bulk_pages.progress(run(), 60.0)
    assert (step, share) == ("running", 0.25)
    assert words == "250 of 1,000 sessions, 12,345 tokens, $1.50, 3 min left"


def test_before_anything_is_done_nobody_knows_how_long_it_takes() -> None:
    _, share, words = bulk_pages.progress(run(request_counts={"processing": 1_000}), 60.0)
    assert share == 0.0
    assert "left" not in words


def test_while_it_is_planned_no_share_is_told() -> None:
    assert bulk_pages.progress(run(state="planning"), 1.0)[1] is None
    assert bulk_pages.progress(run(sessions={"found": 0, "skipped": 0}), 1.0)[1] is None


@pytest.mark.parametrize(
    ("amount", "words"), [(None, "unknown"), (0.0, "$0.00"), (0.0123, "$0.0123"), (1_234.5, "$1,234.50")]
)
def test_money_is_told_with_the_digits_that_matter(amount: float | None, words: str) -> None:
    assert bulk_pages.dollars(amount) == words
