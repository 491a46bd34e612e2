"""Bulk runs through the running service: planned, fed, paid once, stopped and gone on with."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from tests.integration.service import Service, history

Json = Any


@pytest.fixture(autouse=True)
def good_answers(service: Service) -> None:
    service.play()


def start(service: Service, **wanted: Json) -> Json:
    answer = service.http.post("/v1/bulk", json=wanted)
    assert answer.status_code == 202, answer.text
    return answer.json()


def run_at(service: Service, run_id: str, *states: str) -> Json:
    def look() -> Json:
        run = service.http.get(f"/v1/bulk/{run_id}").json()
        return run if run["state"] in states else None

    return service.until(look, f"the run did not come to {states}")


def lines(service: Service, run_id: str) -> list[Json]:
    answer = service.http.get(f"/v1/bulk/{run_id}/results")
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def sessions(service: Service, prefix: str, count: int) -> None:
    for number in range(count):
        service.put_session(f"{prefix}-{number}", history(4))


def test_a_run_compacts_what_its_selection_finds_and_an_identical_one_pays_nothing(service: Service) -> None:
    sessions(service, "twice", 5)
    service.put_session("other", history(4))
    order = {"selection": {"id_prefix": "twice-"}}
    run = run_at(service, start(service, **order)["id"], "ended")
    assert (run["end_reason"], run["sessions"]) == ("done", {"found": 5, "skipped": 0})
    assert run["request_counts"] == {"processing": 0, "succeeded": 5, "errored": 0, "canceled": 0, "expired": 0}
    assert run["tokens"]["after"] < run["tokens"]["before"]
    assert run["cost"]["spent_usd"] > 0
    told = lines(service, run["id"])
    assert sorted(line["session_id"] for line in told) == [f"twice-{number}" for number in range(5)]
    for line in told:
        assert service.result(line["result"]["job_id"])["strategy"] == "fresh"
        assert service.job(line["result"]["job_id"])["trigger"] == "bulk"
    assert len(service.calls) == 5
    again = run_at(service, start(service, **order)["id"], "ended")
    assert (again["sessions"], again["skipped"]) == ({"found": 0, "skipped": 5}, {"unchanged": 5})
    assert len(service.calls) == 5


def test_another_order_compacts_anew_from_what_the_producer_stored(service: Service) -> None:
    """The second summary is made of the conversation, not of the first summary."""
    sessions(service, "anew", 1)
    for instructions in ("Keep the names.", "Keep the numbers."):
        run = start(service, selection={"id_prefix": "anew-"}, instructions=instructions)
        assert run_at(service, run["id"], "ended")["request_counts"]["succeeded"] == 1
    first, second = service.calls
    assert "part 4:" in first.json()["messages"][0]["content"][0]["text"]
    assert "part 4:" in second.json()["messages"][0]["content"][0]["text"]
    assert len(service.view("anew-0", "live")) == 3


def test_a_dry_run_plans_and_waits_until_it_is_resumed(service: Service) -> None:
    sessions(service, "dry", 2)
    service.put_session("dry-empty", [{"role": "user", "content": "Hello"}])
    plan = run_at(service, start(service, selection={"id_prefix": "dry-"}, dry_run=True)["id"], "ready")
    assert plan["sessions"] == {"found": 2, "skipped": 1}
    assert plan["skipped"] == {"nothing_to_compact": 1}
    assert plan["tokens"]["found"] > 2_000
    assert plan["cost"]["batched_usd"] == pytest.approx(plan["cost"]["live_usd"] / 2)
    assert service.calls == []
    assert service.http.post(f"/v1/bulk/{plan['id']}/resume").status_code == 200
    assert run_at(service, plan["id"], "ended")["request_counts"]["succeeded"] == 2


def test_a_sample_is_done_first_and_the_rest_when_somebody_has_looked(service: Service) -> None:
    sessions(service, "sample", 5)
    run = run_at(service, start(service, selection={"id_prefix": "sample-"}, sample=2)["id"], "sampled")
    assert (run["request_counts"]["succeeded"], run["request_counts"]["processing"]) == (2, 3)
    assert len(service.calls) == 2
    service.http.post(f"/v1/bulk/{run['id']}/resume")
    assert run_at(service, run["id"], "ended")["request_counts"]["succeeded"] == 5


def test_a_budget_that_does_not_reach_for_one_session_makes_no_call(service: Service) -> None:
    sessions(service, "poor", 3)
    plan = run_at(service, start(service, selection={"id_prefix": "poor-"}, dry_run=True)["id"], "ready")
    half = round(plan["cost"]["live_usd"] / 6, 6)
    run = run_at(service, start(service, selection={"id_prefix": "poor-"}, max_usd=half)["id"], "ended")
    assert (run["end_reason"], run["skipped"]) == ("max_usd", {"max_usd": 3})
    assert service.calls == []


def test_a_cancelled_run_ends_and_what_was_not_begun_stays_as_it_was(service: Service) -> None:
    sessions(service, "stop", 3)
    plan = run_at(service, start(service, selection={"id_prefix": "stop-"}, dry_run=True)["id"], "ready")
    assert service.http.post(f"/v1/bulk/{plan['id']}/cancel").status_code == 202
    run = run_at(service, plan["id"], "ended")
    assert (run["end_reason"], run["request_counts"]["canceled"]) == ("cancelled", 3)
    assert service.calls == []
    assert len(service.view("stop-0", "live")) == len(history(4))


def test_an_open_breaker_skips_a_session_unless_the_run_is_forced(service: Service) -> None:
    refused = {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}
    service.play([{"status": 400, "body": refused}])
    service.put_session("broken-0", history(30), settings={"context_window": 30_000})
    for _ in range(3):
        service.compact("broken-0", trigger="auto")
    service.play()
    run = run_at(service, start(service, selection={"id_prefix": "broken-"})["id"], "ended")
    assert run["skipped"] == {"circuit_open": 1}
    forced = run_at(service, start(service, selection={"id_prefix": "broken-"}, force=True)["id"], "ended")
    assert forced["request_counts"]["succeeded"] == 1


def test_a_run_may_say_who_writes_the_summaries(service: Service) -> None:
    sessions(service, "writer", 1)
    run = start(service, selection={"id_prefix": "writer-"}, model="claude-sonnet-5-5")
    run_at(service, run["id"], "ended")
    assert [call.json()["model"] for call in service.calls] == ["claude-sonnet-5-5"]


def test_a_failure_that_would_come_again_is_not_paid_for_again(service: Service) -> None:
    """A model that never writes a summary: the run fails, and an identical one leaves the session alone."""
    service.play([{"text": "I went on with the task instead."}])
    sessions(service, "stubborn", 1)
    first = run_at(service, start(service, selection={"id_prefix": "stubborn-"})["id"], "ended")
    assert first["failed"] == {"no_summary": 1}
    assert first["cost"]["spent_usd"] > 0
    calls = len(service.calls)
    again = run_at(service, start(service, selection={"id_prefix": "stubborn-"})["id"], "ended")
    assert again["skipped"] == {"failed_before": 1}
    assert len(service.calls) == calls
    forced = run_at(service, start(service, selection={"id_prefix": "stubborn-"}, force=True)["id"], "ended")
    assert forced["failed"] == {"no_summary": 1}
    assert len(service.calls) > calls


def test_new_messages_make_a_session_another_one(service: Service) -> None:
    sessions(service, "grown", 1)
    order = {"selection": {"id_prefix": "grown-"}}
    run_at(service, start(service, **order)["id"], "ended")
    service.append("grown-0", [{"role": "user", "content": "And one thing more."}])
    assert run_at(service, start(service, **order)["id"], "ended")["request_counts"]["succeeded"] == 1
    assert run_at(service, start(service, **order)["id"], "ended")["skipped"] == {"unchanged": 1}


def test_a_session_that_cannot_be_read_stops_nobody_elses(service: Service) -> None:
    sessions(service, "damaged", 3)
    damage = (
        "UPDATE messages SET body = decode('09', 'hex') WHERE session_id ="
        " (SELECT id FROM sessions WHERE name = 'damaged-1') AND seq = 2"
    )
    with psycopg.connect(service.database_url.replace("+psycopg", ""), autocommit=True) as conn:
        conn.execute(damage)
    run = run_at(service, start(service, selection={"id_prefix": "damaged-"})["id"], "ended")
    assert run["skipped"] == {"invalid_session": 1}
    assert run["request_counts"]["succeeded"] == 2


def test_two_identical_runs_at_once_pay_for_each_session_once(service: Service) -> None:
    service.play([{"good_summary": {}, "delay_s": 0.3}])
    sessions(service, "both", 6)
    orders = [start(service, selection={"id_prefix": "both-"}) for _ in range(2)]
    ended = [run_at(service, run["id"], "ended") for run in orders]
    assert sum(run["request_counts"]["succeeded"] for run in ended) == 6
    assert sum(run["skipped"].get("unchanged", 0) for run in ended) == 6
    assert len(service.calls) == 6
