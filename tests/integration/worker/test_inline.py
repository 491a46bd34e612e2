"""Inline jobs through the running service: the model summarises what came with the request, and nothing of it stays."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.integration.service import PATIENCE_SECONDS, Service, history

MODEL = "claude-haiku-4-5"
BROKEN = {"status": 400, "body": {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}}
JOBS = "/v1/compactions"


@pytest.fixture(autouse=True)
def good_answers(service: Service) -> None:
    service.play()


@pytest.fixture
def database(service: Service) -> Iterator[psycopg.Connection[Any]]:
    address = service.database_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


def enqueue(service: Service, messages: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    answer = service.http.post(JOBS, json={"model": MODEL, "messages": messages} | fields)
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    return job


def chat(rounds: int) -> list[dict[str, Any]]:
    """A chat with tools as OpenAI's clients keep it."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You move services."},
        {"role": "user", "content": "Move the invoices to the new service. TASK-1001"},
    ]
    for number in range(1, rounds + 1):
        function = {"name": "Read", "arguments": json.dumps({"path": f"billing/{number}.py"})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": f"Reading part {number}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": "value = compute(value)\n" * 170})
    return [*messages, {"role": "assistant", "content": "The last part is moved."}]


def test_the_model_summarises_what_came_with_the_request(service: Service) -> None:
    job = service.wait(enqueue(service, history(30), instructions="Keep the names of files.")["id"])
    assert (job["status"], job["was_compacted"], job["session_id"]) == ("succeeded", True, None)
    result = service.result(job["id"])
    assert (result["strategy"], result["session_id"], result["covers_through_seq"]) == ("fresh", None, 62)
    assert result["api_messages"][0]["role"] == "user"
    assert result["post_tokens"] < result["pre_tokens"]
    [call] = service.calls
    asked = call.json()["messages"][0]["content"][0]["text"]
    assert "TASK-1001" in asked
    assert "part 30: " in asked


def test_a_chat_is_summarised_like_any_other_history(service: Service) -> None:
    job = service.wait(enqueue(service, chat(20))["id"])
    assert (job["status"], job["was_compacted"]) == ("succeeded", True)
    assert service.result(job["id"])["api_messages"][0]["role"] == "user"
    asked = json.dumps(service.calls[-1].json())
    assert "billing/20.py" in asked
    assert "TASK-1001" in asked


def test_its_result_is_there_in_every_format(service: Service) -> None:
    """The rows of a log are named after the job, since there is no session."""
    job = service.wait(enqueue(service, chat(8))["id"])
    asked = {
        name: service.http.get(f"{JOBS}/{job['id']}/result", params={"format": name})
        for name in ("anthropic", "openai", "claude_code")
    }
    assert {name: answer.status_code for name, answer in asked.items()} == dict.fromkeys(asked, 200)
    assert asked["anthropic"].json()["model"] == MODEL
    assert asked["openai"].json()["messages"][0] == {"role": "system", "content": "You move services."}
    rows = [json.loads(line) for line in asked["claude_code"].text.splitlines()]
    assert {row["sessionId"] for row in rows} == {job["id"]}


def test_a_part_is_named_by_a_message_of_the_request(service: Service) -> None:
    messages = history(30)
    messages[41]["uuid"] = "here"  # the call of round 21
    job = service.wait(enqueue(service, messages, scope={"kind": "up_to", "uuid": "here"})["id"])
    assert (job["status"], job["was_compacted"]) == ("succeeded", True)
    kept = json.dumps(service.result(job["id"])["api_messages"])
    assert "part 30: " in kept
    assert "part 10: " not in kept


def test_an_automatic_one_asks_the_guards(service: Service) -> None:
    job = service.wait(enqueue(service, history(3), trigger="auto")["id"])
    assert (job["status"], job["was_compacted"], job["reason"]) == ("succeeded", False, "below_threshold")
    assert service.calls == []
    small = {"context_window": 30_000}
    full = service.wait(enqueue(service, history(30), trigger="auto", settings=small)["id"])
    assert (full["status"], full["was_compacted"]) == ("succeeded", True)


def test_no_breaker_counts_its_failures(service: Service) -> None:
    """Three failed automatic jobs would stop a session; there is none, so the fourth is tried as well."""
    service.play([BROKEN] * 8)
    small = {"context_window": 30_000}
    job = service.wait(enqueue(service, history(30), trigger="auto", settings=small)["id"])
    for _ in range(3):
        assert job["status"] == "failed", job
        job = service.wait(service.http.post(f"{JOBS}/{job['id']}/retry").json()["id"])
    assert (job["status"], job["reason"]) == ("failed", None)
    assert service.http.get("/v1/breakers", params={"state": "open"}).json()["data"] == []


def test_a_retry_sends_the_same_messages_to_the_model(service: Service) -> None:
    first = service.wait(enqueue(service, history(20))["id"])
    again = service.wait(service.http.post(f"{JOBS}/{first['id']}/retry").json()["id"])
    assert (again["status"], again["was_compacted"]) == ("succeeded", True)
    one, two = (call.json()["messages"] for call in service.calls)
    assert one == two
    assert service.result(first["id"])["api_messages"]  # the first result stays


def test_an_old_one_is_swept_by_a_worker_and_nothing_of_it_is_left(
    service: Service, database: psycopg.Connection[Any]
) -> None:
    service.put_session("stays", history(3))
    job = service.wait(enqueue(service, history(20))["id"])
    young = service.wait(enqueue(service, history(2))["id"])
    row = database.execute("SELECT session_id FROM jobs WHERE id = %s", (job["id"],)).fetchone()
    assert row is not None
    database.execute("UPDATE sessions SET created_at = now() - interval '40 days' WHERE id = %s", row)
    database.execute("UPDATE jobs SET ended_at = now() - interval '40 days' WHERE id = %s", (job["id"],))
    service.kill_workers()
    service.start_worker(COMPACTD_RETENTION_DAYS="30")  # a new leader begins with a pass
    until = time.monotonic() + PATIENCE_SECONDS
    while service.http.get(f"{JOBS}/{job['id']}").status_code != 404:
        assert time.monotonic() < until, service.log("worker")[-2000:]
        time.sleep(0.1)
    for query in (
        "SELECT count(*) FROM sessions WHERE id = %s",
        "SELECT count(*) FROM messages WHERE session_id = %s",
        "SELECT count(*) FROM results WHERE session_id = %s",
        "SELECT count(*) FROM jobs WHERE session_id = %s",
    ):
        assert database.execute(query, row).fetchone() == (0,), query
    for table in ("attempts", "job_events"):
        query = f"SELECT count(*) FROM {table} WHERE job_id = %s"  # noqa: S608 - our own names
        assert database.execute(query, (job["id"],)).fetchone() == (0,)
    assert service.job(young["id"])["status"] == "succeeded"
    assert len(service.view("stays", "full")) == len(history(3))
