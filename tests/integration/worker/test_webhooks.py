"""News of jobs through the running service: verified by the library, tried again, and not lost by any death."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from ops.embedded import Valkey
from tests.integration.service import Service, history

TIMEOUT_SECONDS = 1  # a claim lasts five seconds longer: so long the news of a killed worker waits


@dataclass
class Heard:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Endpoint:
    """A receiver on loopback: answers with `statuses` in turn, then 204, and holds back while `open` is not set."""

    statuses: list[int] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    open: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def of(self, path: str) -> list[Heard]:
        """What came to this path."""
        return [one for one in self.heard if one.path == path]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    one = Endpoint()
    one.open.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            one.heard.append(Heard(self.path, headers, body))
            one.open.wait(30)
            self.send_response(one.statuses.pop(0) if one.statuses else 204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Says nothing."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: object) -> None:
            """A caller that was killed is no news."""

    server = Quiet(("127.0.0.1", 0), Handler)
    one.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield one
    one.open.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("service")
    environ = {
        "COMPACTD_HOOK_ALLOW_PRIVATE": "true",
        "COMPACTD_HOOK_PORTS": "any",
        "COMPACTD_WEBHOOK_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
        "COMPACTD_WEBHOOK_BACKOFF_SECONDS": "0.1",
    }
    with Service(folder, module_database_url, valkey.url(), **environ) as running:
        running.put_session("told", history(10))
        yield running


def listening(service: Service, endpoint: Endpoint, path: str, **wanted: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A new webhook, the only one of the tenant."""
    for old in service.http.get("/v1/webhooks").json()["data"]:
        service.http.delete(f"/v1/webhooks/{old['id']}")
    answer = service.http.post("/v1/webhooks", json={"url": endpoint.url + path} | wanted)
    assert answer.status_code == 201, answer.text
    hook: dict[str, Any] = answer.json()
    return hook


def log(service: Service, hook: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = service.http.get(f"/v1/webhooks/{hook['id']}/deliveries").json()["data"]
    return found


def ended(service: Service, hook: dict[str, Any], status: str = "delivered") -> list[dict[str, Any]]:
    """The log once its newest entry has this status."""
    found: list[dict[str, Any]] = service.until(
        lambda: entries if (entries := log(service, hook)) and entries[0]["status"] == status else None,
        f"nothing was {status}",
    )
    return found


def test_the_end_of_a_job_is_told_and_verified_by_the_library(service: Service, endpoint: Endpoint) -> None:
    hook = listening(service, endpoint, "/ends")
    job = service.compact("told")
    (entry,) = ended(service, hook)
    (heard,) = endpoint.of("/ends")
    news = Webhook(hook["secret"]).verify(heard.body, heard.headers)
    assert (news["type"], news["data"]["job_id"], news["data"]["session_id"]) == (
        "compaction.succeeded",
        job["id"],
        "told",
    )
    assert heard.headers["webhook-id"] == entry["webhook_id"]
    assert (entry["job_id"], entry["attempts"], entry["last_status"], entry["last_error"]) == (job["id"], 1, 204, None)
    assert b"TASK-1001" not in heard.body
    assert not {"summary", "content", "messages", "instructions", "metadata"} & set(news["data"])


def test_a_ping_is_sent_whatever_the_webhook_wants_to_hear(service: Service, endpoint: Endpoint) -> None:
    hook = listening(service, endpoint, "/ping", events=["compaction.failed"])
    assert service.http.post(f"/v1/webhooks/{hook['id']}/test").status_code == 202
    ended(service, hook)
    (heard,) = endpoint.of("/ping")
    assert Webhook(hook["secret"]).verify(heard.body, heard.headers)["type"] == "webhook.ping"


def test_a_receiver_in_trouble_is_told_again_under_the_same_id(service: Service, endpoint: Endpoint) -> None:
    hook = listening(service, endpoint, "/trouble")
    endpoint.statuses = [503, 500]
    service.http.post(f"/v1/webhooks/{hook['id']}/test")
    (entry,) = ended(service, hook)
    assert (entry["attempts"], entry["last_status"]) == (3, 204)
    assert {heard.headers["webhook-id"] for heard in endpoint.of("/trouble")} == {entry["webhook_id"]}
    assert service.http.get(f"/v1/webhooks/{hook['id']}").json()["failing_since"] is None


def test_a_receiver_that_is_gone_is_switched_off(service: Service, endpoint: Endpoint) -> None:
    hook = listening(service, endpoint, "/gone")
    endpoint.statuses = [410]
    service.http.post(f"/v1/webhooks/{hook['id']}/test")
    (entry,) = ended(service, hook, "failed")
    assert (entry["last_error"], entry["last_status"]) == ("http_status", 410)
    found = service.http.get(f"/v1/webhooks/{hook['id']}").json()
    assert (found["enabled"], found["disabled_reason"]) == (False, "gone")


def test_both_secrets_verify_what_is_sent_during_a_rotation(service: Service, endpoint: Endpoint) -> None:
    hook = listening(service, endpoint, "/rotated")
    turned = service.http.post(f"/v1/webhooks/{hook['id']}/rotate", json={"overlap_seconds": 600}).json()
    service.http.post(f"/v1/webhooks/{hook['id']}/test")
    ended(service, hook)
    (heard,) = endpoint.of("/rotated")
    for secret in (hook["secret"], turned["secret"]):
        assert Webhook(secret).verify(heard.body, heard.headers)["type"] == "webhook.ping"


def test_news_that_was_committed_while_no_worker_lived_is_sent_by_the_next_one(
    service: Service, endpoint: Endpoint
) -> None:
    hook = listening(service, endpoint, "/later")
    service.kill_workers()
    job = service.enqueue("told")
    service.http.post(f"/v1/compactions/{job['id']}/cancel")
    (waiting,) = log(service, hook)
    assert (waiting["status"], waiting["attempts"], endpoint.of("/later")) == ("pending", 0, [])
    service.start_worker()
    (entry,) = ended(service, hook)
    assert (entry["event"], entry["job_id"]) == ("compaction.cancelled", job["id"])


def test_a_worker_that_is_killed_while_it_delivers_loses_nothing(service: Service, endpoint: Endpoint) -> None:
    hook = listening(service, endpoint, "/killed")
    endpoint.open.clear()
    service.http.post(f"/v1/webhooks/{hook['id']}/test")
    service.until(lambda: endpoint.of("/killed"), "the receiver was not called")
    service.kill_workers()
    endpoint.open.set()
    service.start_worker()
    (entry,) = ended(service, hook)
    assert entry["attempts"] >= 2
    assert {heard.headers["webhook-id"] for heard in endpoint.of("/killed")} == {entry["webhook_id"]}
