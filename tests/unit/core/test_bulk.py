from __future__ import annotations

import re
from decimal import Decimal

import pytest

from compaction.core import bulk
from compaction.core.bulk import Budget, Load

ORDER = {"prompt_version": 2, "summarizer": "claude", "strategy": None, "model": "m", "instructions": None}


@pytest.mark.parametrize(
    "change",
    [
        {"prompt_version": 3},
        {"summarizer": "extractive"},
        {"strategy": "fresh"},
        {"model": "n"},
        {"instructions": "Keep names."},
    ],
)
def test_whatever_decides_a_summary_makes_another_recipe(change: dict[str, object]) -> None:
    assert bulk.recipe(**ORDER) == bulk.recipe(**ORDER)  # type: ignore[arg-type]  # words of an order
    assert bulk.recipe(**(ORDER | change)) != bulk.recipe(**ORDER)  # type: ignore[arg-type]  # the same


def test_parts_of_a_recipe_cannot_run_into_each_other() -> None:
    one = bulk.recipe(prompt_version=2, summarizer="claude", strategy="ab", model="c", instructions=None)
    other = bulk.recipe(prompt_version=2, summarizer="claude", strategy="a", model="bc", instructions=None)
    assert one != other


def test_a_custom_id_is_one_that_the_message_batches_api_takes() -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", bulk.custom_id(2**63 - 1))


def test_a_budget_counts_what_is_spent_and_stops_before_it_is_overdrawn() -> None:
    """By hand: 1.00 spent, 0.40 each, 2.00 allowed: two fit (1.80), the third would make 2.20."""
    items = [Load(100, Decimal("0.4"))] * 5
    assert bulk.affordable(Budget(Decimal(2), None), Load(0, Decimal(1)), items) == (2, "max_usd")
    assert bulk.affordable(Budget(None, 350), Load(50, Decimal(0)), items) == (3, "max_tokens")
    assert bulk.affordable(Budget(), Load(), items) == (5, None)
    assert bulk.affordable(Budget(Decimal("1.4"), None), Load(0, Decimal(1)), items) == (1, "max_usd")


def test_an_item_is_expected_to_use_its_session_our_prompt_and_a_usual_summary() -> None:
    assert bulk.expected_load(100_000, Decimal("0.5")) == Load(110_500, Decimal("0.5"))
    assert bulk.expected_load(0, None) == Load(10_500, Decimal(0))


def test_requests_are_counted_as_the_message_batches_api_names_them() -> None:
    states = {"found": 1, "queued": 2, "batched": 4, "succeeded": 8, "failed": 16, "cancelled": 32, "expired": 64}
    assert bulk.request_counts(states | {"skipped": 128}) == {
        "processing": 7,
        "succeeded": 8,
        "errored": 16,
        "canceled": 32,
        "expired": 64,
    }
