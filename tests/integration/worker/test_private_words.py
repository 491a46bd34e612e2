"""Words of a session, keys and secrets never reach a log, an event, a metric, an error's text or Redis.

One service lives through everything that can go wrong with words in every place; then everything it wrote is searched.
Each canary says where it was planted, so that a finding names its way out.
"""

from __future__ import annotations

import base64
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import redis

from ops.embedded import Postgres, Valkey
from tests.integration.service import KEY, Service, history

CANARY = "canary7f3a"
PEPPER = f"{CANARY}-pepper"
BODY_KEY = f"k1:{base64.b64encode(f'{CANARY}-body-key-0123456789'.encode().ljust(32, b'0')[:32]).decode()}"
PROVIDER_KEY = f"sk-{CANARY}-provider-key"
HOOK_SECRET = "whsec_" + base64.b64encode(b"canary-hook-secret-canary-hook-s").decode()
WRONG_KEY = f"ck_wrongkey_{CANARY}" + "w" * 33
WINDOW = {"context_window": 30_000}


def said(place: str) -> str:
    """A canary that names its place."""
    return f"{CANARY}-{place}"


def error(status: int, kind: str, place: str) -> dict[str, Any]:
    """A provider's refusal that quotes what it was sent."""
    return {"status": status, "body": {"type": "error", "error": {"type": kind, "message": f"no: {said(place)}"}}}


GOOD: list[dict[str, Any]] = [{"good_summary": {}}]
ANSWERS: dict[str, list[dict[str, Any]]] = {  # how the provider may answer, each with words in it
    "good": GOOD,
    "no-summary": [{"text": f"I went on with the task: {said('went-on')}"}],
    "refused": [{"text": said("refusal"), "stop_reason": "refusal"}],
    "cut": [{"text": "<summary>" + said("cut"), "stop_reason": "max_tokens"}],
    "invalid": [error(400, "invalid_request_error", "provider-400")],
    "too-large": [error(413, "request_too_large", "provider-413")],
    "no-model": [error(404, "not_found_error", "provider-404")],
    "overloaded": [error(529, "overloaded_error", "provider-529"), *GOOD],
    "broken": [error(500, "api_error", "provider-500"), *GOOD],
    "html": [{"raw": f"<html>{said('provider-html')}</html>", "status": 502}, *GOOD],
    "hung-up": [{"text": said("half-sent") * 50, "disconnect_after_chars": 40}, *GOOD],
    "stream-error": [{"sse_error": {"type": "api_error", "message": said("sse-error")}, "after_text": "x"}, *GOOD],
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    """The service after it has lived through everything; at the loudest level of its log."""
    environ = {
        "COMPACTD_LOG_LEVEL": "debug",
        "COMPACTD_KEY_PEPPER": PEPPER,
        "COMPACTD_BODY_KEYS": BODY_KEY,
        "COMPACTD_BACKOFF_BASE_SECONDS": "0.05",
        "COMPACTD_WEBHOOK_BACKOFF_SECONDS": "0.05",
        "COMPACTD_HOOK_ALLOW_PRIVATE": "true",
        "COMPACTD_HOOK_PORTS": "any",
        "ANTHROPIC_API_KEY": PROVIDER_KEY,
    }
    with Service(tmp_path_factory.mktemp("private"), module_database_url, valkey.url(), **environ) as running:
        set_up_endpoints(running)
        for name, answers in ANSWERS.items():
            compact(running, name, answers)
        for name in ("good", "invalid"):
            compact_inline(running, ANSWERS[name])
        die_in_the_middle(running)
        send_broken_requests(running)
        lose_the_provider(running)
        yield running


def talk() -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "toolu_c", "name": "Read", "input": {"path": said("tool-input")}}
    result = {"type": "tool_result", "tool_use_id": "toolu_c", "content": said("tool-result") + " value" * 500}
    return [
        {"role": "user", "content": said("user"), "uuid": said("uuid")},
        *history(12),
        {"role": "user", "content": "Read on."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": said("assistant")},
    ]


def set_up_endpoints(service: Service) -> None:
    """A hook and a webhook at an address that holds a token and at which nobody answers."""
    url = f"http://127.0.0.1:9/{said('url-path')}?token={said('url-token')}"
    hook = {"event": "session_start", "url": url, "secret": HOOK_SECRET}
    assert service.http.post("/v1/hooks", json=hook).status_code == 201
    webhook = service.http.post("/v1/webhooks", json={"url": url}).json()
    SECRETS.append(webhook["secret"])
    SECRETS.append(service.http.post(f"/v1/webhooks/{webhook['id']}/rotate", json={}).json()["secret"])
    made = service.http.post("/v1/api-keys", json={"tenant": "default", "scopes": ["read"]}).json()
    SECRETS.append(made["key"])
    SECRETS.append(service.http.post(f"/v1/api-keys/{made['public_id']}/rotate", json={}).json()["key"])


SECRETS = [KEY, PEPPER, BODY_KEY.split(":")[1], PROVIDER_KEY, HOOK_SECRET, WRONG_KEY]
JOBS: list[str] = []


def put(service: Service, name: str, **fields: Any) -> None:  # noqa: ANN401 - JSON
    tool = {"name": "Read", "description": said("tool"), "input_schema": {"type": "object"}}
    service.put_session(name, talk(), system=said("system"), tools=[tool], **fields)
    for kind in ("files", "memory", "skills"):
        service.http.put(f"/v1/sessions/{name}/state/{kind}/{said('key')}", json={"content": said(kind)})


def compact(service: Service, name: str, answers: list[dict[str, Any]]) -> None:
    """Jobs of two kinds with this provider; all of them end."""
    service.play(answers)
    put(service, name)
    wanted = {"instructions": said("instructions"), "metadata": {"note": said("metadata")}}
    for trigger in ("manual", "auto"):
        job = service.enqueue(name, trigger=trigger, **wanted)
        JOBS.append(job["id"])
        service.wait(job["id"])
        service.http.get(f"/v1/compactions/{job['id']}/result")


def compact_inline(service: Service, answers: list[dict[str, Any]]) -> None:
    """A job that brings its words along."""
    service.play(answers)
    wanted = {"model": "claude-haiku-4-5", "system": said("system"), "instructions": said("instructions")}
    answer = service.http.post("/v1/compactions", json=wanted | {"messages": talk(), "metadata": {"n": said("meta")}})
    assert answer.status_code == 202, answer.text
    JOBS.append(answer.json()["id"])
    service.wait(JOBS[-1])
    service.http.post(f"/v1/compactions/{JOBS[-1]}/apply", json={"prefix_hash": "0" * 64})


def die_in_the_middle(service: Service) -> None:
    """A worker is killed while the model writes, and another one ends the job."""
    service.play([{"good_summary": {}, "delay_s": 2.0}, *GOOD])
    put(service, "killed")
    job = service.enqueue("killed", instructions=said("instructions"))
    JOBS.append(job["id"])
    service.until(lambda: service.calls, "no call was made")
    service.workers[-1].signal(signal.SIGKILL)
    service.kill_workers()
    service.start_worker()
    service.wait(job["id"])


def send_broken_requests(service: Service) -> None:
    """What a producer can get wrong, with words in each place; every answer is kept."""
    path, words = "/v1/sessions/broken", said("broken")
    put(service, "broken")
    json_type = {"Content-Type": "application/json"}
    wrong: list[tuple[str, str, dict[str, Any]]] = [
        ("PUT", path, {"content": f'{{"model": "{words}', "headers": json_type}),
        ("PUT", path, {"json": {words: words, "model": 7}}),
        ("PUT", f"/v1/sessions/{words}%20{words}", {"json": {"model": "m"}}),
        ("POST", f"{path}/messages", {"json": {"messages": [{"role": words, "content": words}]}}),
        ("POST", f"{path}/messages", {"json": {"messages": [{"role": "user", "content": {words: words}}]}}),
        ("POST", f"{path}/messages", {"content": f'{{"messages": [{{"role": "user", {words}', "headers": json_type}),
        ("POST", f"{path}/messages", {"json": {"messages": [], "expected_seq": 99_999}}),
        ("POST", f"{path}/messages", {"content": words.encode(), "headers": json_type | {"Content-Encoding": "gzip"}}),
        ("POST", "/v1/compactions", {"json": {"session_id": words, "trigger": words}}),
        ("POST", "/v1/compactions", {"json": {"session_id": "broken", "instructions": words + "\0"}}),
        ("POST", "/v1/compactions", {"json": {"session_id": "none"}, "headers": {"Idempotency-Key": words * 20}}),
        ("POST", "/v1/compactions", {"json": {"session_id": "none"}, "headers": {"traceparent": words}}),
        ("POST", "/v1/compactions", {"json": {"model": words, "messages": [{"role": words, "content": words}]}}),
        ("POST", "/v1/compactions", {"json": {"model": words, "messages": words, "system": {words: words}}}),
        ("POST", "/v1/compactions", {"json": {"model": words, "messages": [{"role": "system", "content": words}, 7]}}),
        ("POST", "/v1/compactions", {"content": f'{{"model": "{words}", "messages": [{words}', "headers": json_type}),
        ("GET", "/v1/compactions", {"params": {"cursor": words, "status": words}}),
        ("GET", f"/v1/compactions/{words}", {}),
        ("GET", f"/{words}", {}),
        ("POST", "/v1/sessions/import", {"content": f'{{"type": "user", "message": "{words}'.encode()}),
        ("POST", "/v1/sessions/import", {"content": words.encode(), "params": {"format": words}}),
        ("POST", "/v1/hooks", {"json": {"event": words, "url": words, "secret": HOOK_SECRET + words}}),
        ("POST", "/v1/webhooks", {"json": {"url": f"ftp://{words}:{words}@x/", "events": [words]}}),
        ("POST", "/v1/api-keys", {"json": {"tenant": words, "scopes": [words]}}),
        ("GET", "/v1/compactions", {"headers": {"Authorization": f"Bearer {WRONG_KEY}"}}),
        (
            "GET",
            "/v1/compactions",
            {"headers": {"Authorization": f"Basic {words}", "X-Request-Id": f"{words} {words}"}},
        ),
    ]
    for method, address, how in wrong:
        with service.http.stream(method, address, **how) as answer:
            ANSWERED.append(f"{method} {address}: {answer.status_code} {answer.read().decode()}")


ANSWERED: list[str] = []


def lose_the_provider(service: Service) -> None:
    """The provider refuses our key and says so with words of the request; the job waits, and is cancelled."""
    service.play([error(401, "authentication_error", "provider-401")])
    put(service, "paused")
    job = service.enqueue("paused", instructions=said("instructions"))  # else its memory document would do
    JOBS.append(job["id"])
    service.until(lambda: service.calls, "no call was made")
    service.http.post(f"/v1/compactions/{job['id']}/cancel")
    service.wait(job["id"])


def found_in(text: str) -> list[str]:
    """The canaries and secrets in a text, with a little of what is around the first one."""
    words = [CANARY, *SECRETS, *(secret.removeprefix("whsec_") for secret in SECRETS)]
    return [
        f"{word}: …{text[max(0, text.index(word) - 150) : text.index(word) + 60]}…" for word in words if word in text
    ]


def test_nothing_private_is_in_the_logs(service: Service) -> None:
    for name in ("api", "worker"):
        text = service.log(name)
        assert text.count("\n") > 50
        assert found_in(text) == []
        assert "value = compute(value)" not in text


def test_the_logs_say_nevertheless_what_went_wrong(service: Service) -> None:
    """Silence would pass the test above too."""
    lines = [json.loads(line) for line in service.log("worker").splitlines() if line.startswith("{")]
    assert lines
    assert {"job_id"} <= {name for line in lines for name in line}
    values = {str(value) for line in lines for value in line.values()}
    assert {"job.finished", "succeeded", "failed", "auth_error", "unreachable"} <= values


def test_nothing_private_is_in_a_jobs_events_and_errors(service: Service) -> None:
    assert len(JOBS) == 2 * len(ANSWERS) + 4
    failed = 0
    for job_id in JOBS:
        events = service.http.get(f"/v1/compactions/{job_id}/events", params={"limit": 200})
        job = service.job(job_id)
        failed += job["status"] == "failed"
        told = json.dumps({name: job[name] for name in ("error", "reason", "progress")})
        assert found_in(told + events.text) == []
    assert failed >= 5


def test_no_error_quotes_what_was_sent(service: Service) -> None:
    assert len(ANSWERED) == 26
    for answer in ANSWERED:
        address, _, told = answer.partition(": ")
        status = int(told.split()[0])
        assert 400 <= status < 500 or "expected_seq" in answer or status == 200, answer
        problem = json.loads(told[4:])
        for wrong in problem.get("errors", []):
            wrong.pop("path")  # a field's own name is repeated, so that the caller finds it; a value never is
        assert CANARY not in json.dumps(problem), (address, told)


def test_nothing_private_is_in_the_logs_of_webhooks(service: Service) -> None:
    (webhook,) = service.http.get("/v1/webhooks").json()["data"]
    service.until(lambda: any(one["attempts"] for one in deliveries(service, webhook["id"])), "no delivery was tried")
    assert CANARY not in json.dumps(deliveries(service, webhook["id"]))


def deliveries(service: Service, webhook_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service.http.get(f"/v1/webhooks/{webhook_id}/deliveries").json()["data"]
    return found


def test_nothing_private_is_in_health_or_metrics(service: Service) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/providers"):
        answer: httpx2.Response = service.http.get(path)
        assert found_in(answer.text) == [], path


def test_nothing_private_is_in_redis(service: Service, valkey: Valkey) -> None:
    """The broker carries ids alone."""
    with redis.Redis.from_url(valkey.url()) as client:
        for key in client.scan_iter():
            assert found_in(key.decode("utf-8", "replace")) == []
            dumped = client.dump(key) or b""
            assert CANARY.encode() not in dumped, key


def test_nothing_private_is_in_the_databases_own_log(service: Service, postgres: Postgres) -> None:
    """Where Postgres complains about a statement, it quotes no values of ours."""
    assert found_in(Path(postgres.log).read_text(encoding="utf-8", errors="replace")) == []
