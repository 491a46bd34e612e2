"""Tenants' hooks around a compaction, through the running service."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ops.embedded import Valkey
from tests.integration.service import Service, history

SECRET = "whsec_" + "c2VjcmV0IG9mIGEgdGVzdCB0aGF0IGlzIGxvbmc="


class Receiver:
    """A tenant's endpoint on loopback; `answers` by event."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answers: dict[str, Any] = {}
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.heard.append(asked)
                receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
                body = json.dumps(receiver.answers.get(asked["event"])).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Says nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        """Ends the endpoint."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """One endpoint for the module."""
    one = Receiver()
    yield one
    one.close()


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey, receiver: Receiver
) -> Iterator[Service]:
    """The running service, allowed to reach the receiver, which hears both events."""
    folder: Path = tmp_path_factory.mktemp("service")
    port = str(urlsplit(receiver.url).port)
    allowed = {"COMPACTD_HOOK_ALLOW_PRIVATE": "true", "COMPACTD_HOOK_PORTS": port}
    with Service(folder, module_database_url, valkey.url(), **allowed) as running:
        for event in ("pre_compact", "session_start"):
            body = {"event": event, "url": receiver.url, "secret": SECRET}
            answer = running.http.post("/v1/hooks", json=body)
            assert answer.status_code == 201, answer.text
        yield running


@pytest.fixture(autouse=True)
def silent(receiver: Receiver, service: Service) -> None:
    """Each test begins with hooks that say nothing and a provider that answers well."""
    receiver.answers = {}
    receiver.heard.clear()
    receiver.headers.clear()
    service.play()


def test_instructions_reach_the_prompt_and_messages_the_result(service: Service, receiver: Receiver) -> None:
    receiver.answers = {
        "pre_compact": {"instructions": "Mention ticket 77."},
        "session_start": {"messages": [{"role": "user", "content": "The freeze ends on Friday."}]},
    }
    service.put_session("asked", history(10))
    job = service.compact("asked")
    assert job["status"] == "succeeded", job["error"]
    assert "Mention ticket 77." in json.dumps(service.calls[0].json())
    result = service.result(job["id"])
    assert result["messages"][-1]["content"] == "The freeze ends on Friday."
    assert [(note["event"], note["ok"]) for note in result["hook_results"]] == [
        ("pre_compact", True),
        ("session_start", True),
    ]


def test_a_hook_hears_ids_and_sizes_signed_and_no_content(service: Service, receiver: Receiver) -> None:
    service.put_session("told", history(10))
    job = service.compact("told")
    asked = receiver.heard[0]
    assert (asked["session_id"], asked["job_id"], asked["trigger"]) == ("told", job["id"], "manual")
    assert asked["pre_tokens"] > 0
    assert "TASK-1001" not in json.dumps(receiver.heard)
    assert receiver.headers[0]["webhook-signature"].startswith("v1,")


def test_a_veto_ends_the_job_and_no_call_is_made(service: Service, receiver: Receiver) -> None:
    receiver.answers = {"pre_compact": {"veto": "legal hold"}}
    service.put_session("vetoed", history(10))
    job = service.compact("vetoed")
    assert (job["status"], job["error"]["code"]) == ("failed", "hook_rejected")
    assert "legal hold" in job["error"]["message"]
    assert service.calls == []


def test_a_hook_that_answers_nonsense_costs_a_note_and_not_the_job(service: Service, receiver: Receiver) -> None:
    receiver.answers = {"pre_compact": ["odd"], "session_start": {"messages": [{"role": "system", "content": "x"}]}}
    service.put_session("nonsense", history(10))
    job = service.compact("nonsense")
    assert job["status"] == "succeeded"
    assert [note["ok"] for note in service.result(job["id"])["hook_results"]] == [False, False]
