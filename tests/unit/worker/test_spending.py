"""What a job's model calls cost, over calls and attempts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from compaction.core.messages import Usage
from compaction.core.results import Spent
from worker import spending

CALL: dict[str, Any] = {"usage": {"input_tokens": 100, "output_tokens": 20}, "cost_usd": "0.5"}


def test_an_attempts_calls_are_summed_whatever_became_of_them() -> None:
    events = [("model_call", CALL), ("model_asked_again", {"code": "no_summary"}), ("model_call", CALL)]
    assert spending.of_attempt(events) == {
        "input_tokens": 200,
        "output_tokens": 40,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
        "cost_usd": "1.0",
    }


def test_an_attempt_without_an_answered_call_has_no_record() -> None:
    assert spending.of_attempt([("hooks_failed", {})]) is None


def test_records_of_earlier_attempts_add_up() -> None:
    record = spending.of_attempt([("model_call", CALL)])
    assert record is not None
    assert spending.of_earlier([record, record]) == Spent(Usage(200, 40), Decimal("1.0"))
    assert spending.of_earlier([]) == Spent()


def test_one_unknown_price_makes_the_sum_unknown() -> None:
    unknown = CALL | {"cost_usd": None}
    record = spending.of_attempt([("model_call", CALL), ("model_call", unknown)])
    assert record is not None
    assert record["cost_usd"] is None
    assert spending.of_earlier([record]) == Spent(Usage(200, 40), None)
