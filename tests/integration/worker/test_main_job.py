"""The main job through the running service: real SDK, real queue, a scripted Messages API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.service import Service, history

BROKEN = {"status": 400, "body": {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}}
WINDOW = {"context_window": 30_000}  # auto-compact at 15,000 by hand: half the window is the least


@pytest.fixture(autouse=True)
def good_answers(service: Service) -> None:
    """Each test begins with a provider that answers well."""
    service.play()


def test_a_session_is_compacted_by_the_model(service: Service) -> None:
    """One streamed call; boundary and summary come back, and the history is still whole."""
    given = history(30)
    service.put_session("main", given)
    job = service.compact("main")
    assert (job["status"], job["was_compacted"], job["attempt"]) == ("succeeded", True, 1)
    result = service.result(job["id"])
    assert result["strategy"] == "fresh"
    assert result["degraded"] is False
    assert [message["role"] for message in result["messages"]] == ["system", "user", "user"]
    assert result["messages"][1]["is_compact_summary"] is True
    assert "billing/30.py" in result["attachments"][0]["content"][1]["text"]  # the file that was read last
    assert result["api_messages"][0]["role"] == "user"
    assert result["post_tokens"] < result["pre_tokens"]
    assert result["usage"]["output_tokens"] > 0
    assert len(service.calls) == 1
    assert [{k: m[k] for k in ("role", "content")} for m in service.view("main", "full")] == [
        {k: m[k] for k in ("role", "content")} for m in given
    ]
    assert len(service.view("main", "live")) == 3


def test_the_request_holds_the_transcript_as_text_and_no_tools(service: Service) -> None:
    service.put_session("fresh", history(5), tools=[{"name": "Read", "input_schema": {"type": "object"}}])
    service.compact("fresh")
    body: dict[str, Any] = service.calls[-1].json()
    assert "tools" not in body
    assert body["stream"] is True
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert "TASK-1001" in body["messages"][0]["content"][0]["text"]


def test_a_prompt_that_is_too_long_loses_its_oldest_rounds(service: Service) -> None:
    """The fake refuses over a window of 30,000 with the real wording; what was dropped stands on the result."""
    service.play({"refuse_over_window": True, "windows": {"claude-haiku-4-5": 30_000}})
    service.put_session("long", history(40))
    job = service.compact("long")
    assert job["status"] == "succeeded", job["error"]
    result = service.result(job["id"])
    assert result["ptl_attempts"] >= 1
    assert result["dropped"]["rounds"] > 0
    events = service.http.get(f"/v1/compactions/{job['id']}/events").json()["data"]
    assert "tengu_compact_ptl_retry" in [event["type"] for event in events]


def test_three_failed_automatic_jobs_open_the_breaker_and_the_fourth_makes_no_call(service: Service) -> None:
    service.play([BROKEN])
    service.put_session("broken", history(30), settings=WINDOW)
    for expected in (1, 2, 3):
        job = service.compact("broken", trigger="auto")
        assert (job["status"], job["error"]["code"]) == ("failed", "api_error")
        breaker = service.http.get("/v1/sessions/broken/breaker").json()
        assert breaker["failures"] == expected
    calls = len(service.calls)
    skipped = service.compact("broken", trigger="auto")
    assert (skipped["status"], skipped["was_compacted"], skipped["reason"]) == ("succeeded", False, "circuit_open")
    assert len(service.calls) == calls == 3
    assert service.http.get(f"/v1/compactions/{skipped['id']}/result").status_code == 404


def test_an_operator_closes_the_breaker(service: Service) -> None:
    service.play([BROKEN])
    service.put_session("reset", history(30), settings=WINDOW)
    for _ in range(3):
        service.compact("reset", trigger="auto")
    assert service.http.post("/v1/sessions/reset/breaker/reset").status_code == 200
    service.play()
    assert service.compact("reset", trigger="auto")["was_compacted"] is True


def test_manual_failures_do_not_count_and_a_manual_success_closes(service: Service) -> None:
    service.play([BROKEN])
    service.put_session("manual", history(30), settings=WINDOW)
    for _ in range(3):
        service.compact("manual")
    assert service.http.get("/v1/sessions/manual/breaker").json()["failures"] == 0


def test_a_session_below_its_threshold_is_skipped(service: Service) -> None:
    service.put_session("small", history(3))
    job = service.compact("small", trigger="auto")
    assert (job["status"], job["was_compacted"], job["reason"]) == ("succeeded", False, "below_threshold")
    assert service.calls == []


def test_an_overloaded_provider_is_asked_again(service: Service) -> None:
    overloaded = {"status": 529, "body": {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}}
    service.play([overloaded, {"good_summary": {}}])
    service.put_session("again", history(10))
    job = service.compact("again")
    assert (job["status"], job["attempt"]) == ("succeeded", 2)


def test_a_summary_that_helps_nothing_changes_nothing(service: Service) -> None:
    long = {"text": "<summary>\n1. Primary Request and Intent: " + "more and more " * 3_000 + "\n</summary>"}
    service.play([long])
    service.put_session("inflated", history(3, characters=400))
    job = service.compact("inflated")
    assert (job["status"], job["error"]["code"]) == ("failed", "not_effective")
    assert len(service.view("inflated", "live")) == len(history(3))


def test_messages_appended_while_the_model_writes_follow_the_summary(service: Service) -> None:
    service.play([{"good_summary": {}, "delay_s": 1.5}])
    service.put_session("tail", history(10))
    job = service.enqueue("tail")
    service.until(lambda: service.calls, "no call was made")
    assert service.append("tail", [{"role": "user", "content": "One more wish: LATE-7"}]).status_code == 200
    assert service.wait(job["id"])["status"] == "succeeded"
    live = service.view("tail", "live")
    assert live[-1]["content"] == "One more wish: LATE-7"
    assert service.result(job["id"])["covers_through_seq"] == len(history(10))


def test_an_open_tool_call_stays_open_for_its_result(service: Service) -> None:
    call = {"type": "tool_use", "id": "toolu_wait", "name": "AskApproval", "input": {"table": "invoices"}}
    service.put_session("open", [*history(10)[:-1], {"role": "assistant", "content": [call]}])
    job = service.compact("open")
    turns = service.result(job["id"])["api_messages"]
    assert turns[-1]["role"] == "assistant"
    assert turns[-1]["content"][-1]["id"] == "toolu_wait"


def test_nothing_private_reaches_the_logs(service: Service) -> None:
    """After a job that went well, one that the provider refused and one whose answer was no summary."""
    answers: list[Any] = [None, [BROKEN], [{"text": "compute(value) is TASK-1001", "stop_reason": "end_turn"}]]
    for number, script in enumerate(answers):
        service.play(script)
        service.put_session(f"private-{number}", history(5))
        service.append(f"private-{number}", [{"role": "user", "content": "LATE-7"}])
        service.compact(f"private-{number}")
        assert service.calls
    for name in ("api", "worker"):
        text = service.log(name)
        assert text
        for secret in ("TASK-1001", "LATE-7", "compute(value)", "sk-test-key", "ck_tests123_ttt"):
            assert secret not in text
