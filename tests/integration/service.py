"""The running service for tests: real API and worker processes on real Postgres and Valkey, and a fake provider."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import httpx2
import redis

from ops.embedded.processes import Command, Process
from ops.fake_provider import Call, FakeProvider, FakeProviderThread

ROOT = Path(__file__).resolve().parents[2]
KEY = "ck_tests123_" + "t" * 43
PATIENCE_SECONDS = 60.0  # a busy machine; nothing here is about speed

Json = Any


class Service:
    """API and workers as child processes; `fake` is what they take for the Messages API."""

    def __init__(self, folder: Path, database_url: str, redis_url: str, **environ: str) -> None:
        self.database_url = database_url
        self.folder = folder
        self._environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "COMPACTD_"))},
            "COMPACTD_DATABASE_URL": database_url,
            "COMPACTD_REDIS_URL": redis_url,
            "COMPACTD_PORT": "0",
            "COMPACTD_BOOTSTRAP_API_KEY": KEY,
            "COMPACTD_WORKER_CONCURRENCY": "20",
            "COMPACTD_LEASE_SECONDS": "4",
            "COMPACTD_HEARTBEAT_SECONDS": "1",
            "COMPACTD_RECONCILE_SECONDS": "0.2",
            "COMPACTD_REDISPATCH_SECONDS": "2",
            "COMPACTD_DRAIN_SECONDS": "2",
            "ANTHROPIC_API_KEY": "sk-test-key-that-must-not-leak",
            **environ,
        }
        self._resources = ExitStack()
        self._started = 0
        self._old_calls = 0
        self.fake: FakeProvider
        self.http: httpx2.Client
        self.workers: list[Process] = []

    def __enter__(self) -> Self:
        self.fake = self._resources.enter_context(FakeProviderThread())
        self._environ["ANTHROPIC_BASE_URL"] = self.fake.url
        try:
            api, told = self._start("api")
            self._resources.callback(api.stop)
            url = f"http://127.0.0.1:{told['port']}"
            headers = {"Authorization": f"Bearer {KEY}"}
            self.http = self._resources.enter_context(httpx2.Client(base_url=url, headers=headers, timeout=90))
            self.start_worker()
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        for worker in self.workers:
            worker.stop()
        self._resources.close()

    @property
    def calls(self) -> list[Call]:
        """The model calls since the last `play`."""
        return self.fake.calls[self._old_calls :]

    def play(self, script: Json = None) -> None:
        """From now on the provider answers like this; None: with good summaries."""
        self._old_calls = len(self.fake.calls)
        self.fake.play(script)

    def start_worker(self, **environ: str) -> Process:
        """One more worker, ready to take jobs."""
        worker, _ = self._start("worker", **environ)
        self.workers.append(worker)
        return worker

    def kill_workers(self) -> None:
        """Kills every worker with signal 9."""
        for worker in self.workers:
            worker.signal(signal.SIGKILL)
            worker.stop()
        self.workers.clear()

    def flush_redis(self) -> None:
        """Redis forgets everything."""
        with redis.Redis.from_url(self._environ["COMPACTD_REDIS_URL"]) as client:
            client.flushall()

    def log(self, name: str) -> str:
        """Everything that the processes of this kind wrote to their logs."""
        return "".join(path.read_text() for path in sorted(self.folder.glob(f"{name}-*.log")))

    def put_session(self, name: str, messages: Iterable[Mapping[str, Json]], **fields: Json) -> None:
        """A stored session with these messages."""
        body = {"model": "claude-haiku-4-5"} | fields
        assert self.http.put(f"/v1/sessions/{name}", json=body).status_code in (200, 201)
        answer = self.append(name, messages)
        assert answer.status_code == 200, answer.text

    def append(self, name: str, messages: Iterable[Mapping[str, Json]]) -> httpx2.Response:
        """Appends to a session."""
        body = json.dumps({"messages": list(messages)}).encode()
        headers = {"Content-Type": "application/json"}
        return self.http.post(f"/v1/sessions/{name}/messages", content=body, headers=headers)

    def enqueue(self, session: str, **fields: Json) -> Json:
        """The accepted job."""
        answer = self.http.post("/v1/compactions", json={"session_id": session, "trigger": "manual"} | fields)
        assert answer.status_code in (200, 202), answer.text
        return answer.json()

    def job(self, job_id: str) -> Json:
        """The job now."""
        return self.http.get(f"/v1/compactions/{job_id}").json()

    def wait(self, job_id: str) -> Json:
        """The job once it has ended."""
        return self.until(lambda: self._ended(job_id), f"job {job_id} did not end")

    def compact(self, session: str, **fields: Json) -> Json:
        """Enqueues and waits for the end."""
        return self.wait(self.enqueue(session, **fields)["id"])

    def result(self, job_id: str) -> Json:
        """The result of a finished job."""
        answer = self.http.get(f"/v1/compactions/{job_id}/result")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def view(self, session: str, view: str) -> list[Json]:
        """The messages of a view."""
        found: list[Json] = self.http.get(f"/v1/sessions/{session}/messages", params={"view": view}).json()["data"]
        return found

    def until(self, look: Callable[[], Json], problem: str) -> Json:
        """What `look` finds once it is true."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not (found := look()):
            assert time.monotonic() < end, f"{problem}\n{self.log('worker')[-2000:]}"
            time.sleep(0.05)
        return found

    def _ended(self, job_id: str) -> Json:
        job = self.http.get(f"/v1/compactions/{job_id}", headers={"Prefer": "wait=5"}).json()
        return job if job["done"] else None

    def _start(self, name: str, **environ: str) -> tuple[Process, Json]:
        self._started += 1
        ready = self.folder / f"{name}-{self._started}.ready"
        process = Process(
            Command(
                name=name,
                arguments=(sys.executable, "-m", name),
                folder=ROOT,
                log=self.folder / f"{name}-{self._started}.log",
                environ=self._environ | environ | {"COMPACTD_READY_FILE": str(ready)},
            )
        )
        self.until(lambda: ready.exists() or not process.is_alive, f"{name} did not become ready")
        assert process.is_alive, self.log(name)[-3000:]
        return process, json.loads(ready.read_text() or "{}")


def history(rounds: int, characters: int = 4_000) -> list[dict[str, Json]]:
    """A session as a producer stores it: a request, then rounds of one tool call and its result."""
    messages: list[dict[str, Json]] = [{"role": "user", "content": "Move the invoices to the new service. TASK-1001"}]
    for number in range(1, rounds + 1):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"path": f"billing/{number}.py"}}
        text = {"type": "text", "text": f"Reading part {number}."}
        output = f"part {number}: " + "value = compute(value)\n" * (characters // 23)
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": output}
        messages.append({"role": "assistant", "api_message_id": f"msg_{number}", "content": [text, call]})
        messages.append({"role": "user", "content": [result]})
    messages.append({"role": "assistant", "content": "The last part is moved."})
    return messages
