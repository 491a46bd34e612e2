"""A job's timeline: what happened, in the order in which it happened, also when a worker was lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from api.dashboard.job_view import Entry, calls, timeline
from compaction.core.messages import Usage
from compaction.store.job_reads import AttemptRow, JobEvent
from compaction.store.job_rows import JobRow

START = datetime(2026, 12, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def job(status: str, ended: float | None) -> JobRow:
    facts = dict.fromkeys(JobRow.__dataclass_fields__) | {
        "status": status,
        "trigger": "auto",
        "scope_kind": "full",
        "created_at": START,
        "ended_at": None if ended is None else at(ended),
    }
    return JobRow(**facts)  # type: ignore[arg-type]  # what the timeline does not read is None


def attempt(number: int, token: int, begin: float, end: float | None, outcome: str | None, **error: str) -> AttemptRow:
    ended = None if end is None else at(end)
    return AttemptRow(number, token, "host:1:a", at(begin), ended, outcome, dict(error) or None, None)


def told(entries: list[Entry]) -> list[str]:
    return [entry.title for entry in entries]


def test_a_lost_worker_and_the_attempt_that_followed() -> None:
    events = [
        JobEvent(1, at(60), "lease_expired", {"status": "retrying"}),
        JobEvent(2, at(60), "tengu_compact_failed", {"code": "worker_lost", "retryable": True, "auto": True}),
        JobEvent(3, at(90), "model_call", {"model": "m", "stop_reason": "end_turn", "cost_usd": "0.5"}),
        JobEvent(4, at(90), "tengu_compact", {"strategy": "fresh", "pre_tokens": 9, "post_tokens": 3}),
    ]
    attempts = [
        attempt(1, 7, 1, 60, "expired", code="worker_lost", message="The worker died."),
        attempt(2, 8, 65, 90, "succeeded"),
    ]
    found = timeline(job("succeeded", 90), attempts, events)
    assert told(found) == [
        "Accepted",
        "Attempt 1: claimed",
        "Lease expired: the worker was lost",
        "Attempt failed",
        "Attempt 1: lease expired, token void",
        "Attempt 2: claimed",
        "Model answered",
        "Compacted",
        "Attempt 2: committed",
        "Ended: succeeded",
    ]
    assert found[1].facts == (("worker", "host:1:a"), ("fencing token", 7))
    assert found[3].facts == (("code", "worker_lost"), ("retryable", True))
    assert [entry.tone for entry in found[2:5]] == ["bad", "bad", "bad"]


def test_an_attempt_that_was_fenced_says_so() -> None:
    found = timeline(job("running", None), [attempt(1, 7, 1, 9, "fenced")], [])
    assert told(found) == ["Accepted", "Attempt 1: claimed", "Attempt 1: fenced: its lease had ended, the worker lives"]


def test_an_event_that_nobody_named_is_shown_by_its_own_name_with_everything_it_says() -> None:
    [_, entry] = timeline(job("queued", None), [], [JobEvent(1, at(5), "brand_new", {"size": 3, "none": None})])
    assert (entry.title, entry.tone, entry.facts) == ("brand_new", "plain", (("size", 3),))


def test_calls_are_listed_with_their_cost_where_it_is_known() -> None:
    usage = {"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 0}
    events = [
        JobEvent(1, at(1), "model_call", {"model": "m", "stop_reason": "end_turn", "usage": usage, "cost_usd": "0.5"}),
        JobEvent(2, at(2), "tengu_compact", {}),
        JobEvent(3, at(3), "model_call", {"cost_usd": "no number", "request_id": "req_1"}),
    ]
    first, second = calls(events)
    assert (first.usage, first.cost_usd, first.stop_reason) == (Usage(9, 2, 1, 0), Decimal("0.5"), "end_turn")
    assert (second.model, second.usage, second.cost_usd, second.request_id) == ("unknown", Usage(), None, "req_1")
