"""When a summary rides on the main conversation's prompt cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from compaction.core.messages import Message, Usage
from compaction.core.results import SessionFacts
from compaction.core.sharing import Sharing, decide, is_warm
from tests.unit.fakes import talk

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SHARING = Sharing(
    now=NOW,
    tokens=160_000,
    room_tokens=180_000,
    min_cacheable_tokens=4_096,
    max_output_tokens=20_000,
    fresh_model="claude-opus-5-5",
)


def ago(**time: float) -> str:
    """A moment before NOW as a producer writes it."""
    return (NOW - timedelta(**time)).isoformat()


def facts(request: Mapping[str, object] | None = None, **settings: object) -> SessionFacts:
    """A session whose last request started two minutes ago."""
    told = {"last_request_started_at": ago(minutes=2)} if request is None else request
    return SessionFacts(session_id="s", tenant="t", model="claude-opus-5-5", request=told, settings=settings)


def table(model: str, usage: Usage) -> Decimal | None:
    """The prices of facts/anthropic.md §6: Opus 5.5 at $4 / $20, reads 0.05 ×; Haiku 5.5 over 100k at $0.50 / $2.50."""
    rates = {"claude-opus-5-5": ("4", "0.20", "20"), "claude-haiku-5-5": ("0.50", "0.05", "2.50")}.get(model)
    if rates is None:
        return None
    put, read, out = map(Decimal, rates)
    whole = usage.input_tokens * put + usage.cache_read_input_tokens * read + usage.output_tokens * out
    return whole / 1_000_000


def no_price(model: str, usage: Usage) -> None:
    """A table that knows no model."""
    del model, usage


def test_a_warm_cache_of_the_same_model_is_shared() -> None:
    assert decide(facts(), talk(3), SHARING, table) == "shared"


@pytest.mark.parametrize(("minutes", "warm"), [(4.7, True), (4.8, False), (30.0, False)])
def test_five_minutes_less_a_margin_of_fifteen_seconds(minutes: float, warm: bool) -> None:
    assert is_warm({"last_request_started_at": ago(minutes=minutes)}, (), NOW) is warm


def test_an_hour_for_sessions_that_pay_for_it() -> None:
    assert is_warm({"last_request_started_at": ago(minutes=50), "cache_ttl": "1h"}, (), NOW)


def test_the_last_answer_tells_when_the_producer_does_not() -> None:
    answer = Message(role="assistant", content="done", created_at=ago(minutes=1))
    assert is_warm({}, (answer,), NOW)
    assert decide(facts({}), (*talk(2), replace(answer, created_at=None)), SHARING, table) == "cold"


def test_switches_of_operator_and_session() -> None:
    assert decide(facts(), talk(3), replace(SHARING, enabled=False), table) == "off"
    assert decide(facts(shared_prefix=False), talk(3), SHARING, table) == "off"


def test_a_request_that_is_no_object_says_nothing() -> None:
    session = replace(facts(), request=["odd"])
    assert decide(session, talk(3), SHARING, table) == "cold"


def test_an_open_call_at_the_end_is_never_sent_along() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}
    messages = (*talk(3), Message(role="assistant", content=[call], api_message_id="open"))
    assert decide(facts(), messages, SHARING, table) == "open_call"


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "Read"}, "any"])
def test_a_forced_tool_call_leaves_no_way_to_answer(choice: object) -> None:
    request = {"last_request_started_at": ago(minutes=1), "tool_choice": choice}
    assert decide(facts(request), talk(3), SHARING, table) == "forced_tool"


@pytest.mark.parametrize("choice", [{"type": "auto"}, {"type": "none"}])
def test_an_open_choice_is_fine(choice: object) -> None:
    request = {"last_request_started_at": ago(minutes=1), "tool_choice": choice}
    assert decide(facts(request), talk(3), SHARING, table) == "shared"


def test_thinking_must_leave_room_for_the_summary() -> None:
    """16,000 + 6,000 is over 20,000; 14,000 + 6,000 is not."""
    thinking = {"type": "enabled", "budget_tokens": 16_000}
    request = {"last_request_started_at": ago(minutes=1), "thinking": thinking}
    assert decide(facts(request), talk(3), SHARING, table) == "no_room"
    request["thinking"] = {"type": "enabled", "budget_tokens": 14_000}
    assert decide(facts(request), talk(3), SHARING, table) == "shared"


def test_a_session_that_fills_the_window_goes_fresh() -> None:
    assert decide(facts(), talk(3), replace(SHARING, tokens=176_000), table) == "no_room"


def test_below_the_least_cacheable_size_there_is_no_cache() -> None:
    assert decide(facts(), talk(3), replace(SHARING, tokens=4_000), table) == "too_small"


def test_a_cheap_fresh_model_beats_a_hit_on_a_dear_one() -> None:
    """Facts §6: $0.17 for the hit on Opus 5.5 against $0.095 for Haiku 5.5 afresh."""
    assert decide(facts(), talk(3), replace(SHARING, fresh_model="claude-haiku-5-5"), table) == "price"


def test_without_prices_only_the_same_model_shares() -> None:
    assert decide(facts(), talk(3), SHARING, no_price) == "shared"
    other = replace(SHARING, fresh_model="unknown")
    assert decide(facts(), talk(3), other, no_price) == "price"
