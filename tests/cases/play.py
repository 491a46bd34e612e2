"""One case played against the running service, from the outside: what a producer, an owner and the provider do.

Time is virtual. The script's delays and the service's own timeouts and pauses are divided by the same TIME_DIVIDER;
what the machine needs to compute is not, so limits that guard against a dead worker are left generous. While an event
of `call:n` happens, the fake holds that call open, however long it takes.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

import httpx2
import psycopg

from tests.cases.shared import Json
from tests.integration.service import Service

TIME_DIVIDER = 30
ENVIRON = {
    "COMPACTD_CALL_TIMEOUT_SECONDS": str(600 / TIME_DIVIDER),  # here and below: the product's default, divided
    "COMPACTD_IDLE_TIMEOUT_SECONDS": str(90 / TIME_DIVIDER),
    "COMPACTD_BACKOFF_BASE_SECONDS": str(2 / TIME_DIVIDER),
    "COMPACTD_RECONCILE_SECONDS": "0.1",
    "COMPACTD_LEASE_SECONDS": "60",  # undivided: nobody dies here, and a busy machine is no dead worker
    "COMPACTD_BREAKER_COOLDOWN_SECONDS": "30",  # undivided: the case that wants one opened its breaker 60 s ago
}
HOUR = timedelta(hours=1) / TIME_DIVIDER
OPENS_AT = 3  # DESIGN §3: failures in a row
NO_JOB: Json = {"done": True, "status": None, "error": None, "reason": None, "was_compacted": None}

STATE_KINDS = {  # the cases' words for what a store holds: ours
    "file": "files",
    "plan": "plans",
    "skill": "skills",
    "agent": "agents",
    "tool": "tools",
    "mcp": "mcp_instructions",
    "memory": "memory",
}


@dataclass
class Play:
    """A case on its way. `jobs` stand in the order of their enqueue; one refused at once is a job without an id."""

    service: Service
    case: Json
    session: str
    accepted: bool = True
    jobs: list[Json] = field(default_factory=list)
    awaited_calls: list[int] = field(default_factory=list)  # whose events are still to happen

    def run(self) -> None:
        """Everything that happens, until nothing is left to happen within an hour."""
        self.awaited_calls = _held_calls(self.case)
        self.service.play(_script(self.case))
        for answer in self._ingested():
            if answer.is_error:
                assert answer.is_client_error, answer.text
                self.accepted = False
                return
        self._happen("before")
        self._enqueue(self.case.get("trigger", "manual"))
        for number in itertools.count():
            if number == len(self.jobs):
                break
            self._settle(number)
            self._happen(f"job:{number + 1}")

    @property
    def last_job(self) -> Json:
        """As it ended."""
        return self.jobs[-1] if self.jobs else NO_JOB

    def _ingested(self) -> Iterator[httpx2.Response]:
        """The service's answers to the session, its history and its state, one by one."""
        told, http, address = self.case.get("session", {}), self.service.http, f"/v1/sessions/{self.session}"
        body = {name: told[name] for name in ("model", "system", "tools") if name in told}
        if "context_window" in told:
            body["settings"] = {"context_window": told["context_window"]}
        yield self._put(address, body)
        if "raw_lines" in self.case:
            file = "\n".join(self.case["raw_lines"]).encode("utf-8", "surrogatepass")
            yield http.post("/v1/sessions/import", params={"session_id": self.session}, content=file)
        else:
            yield self.service.append(self.session, self.case["messages"])
        for number, item in enumerate(told.get("attachments", [])):
            entry = {name: value for name, value in item.items() if name != "type"}
            key = next((str(entry[name]) for name in ("path", "name", "id") if name in entry), str(number))
            yield self._put(f"{address}/state/{STATE_KINDS[item['type']]}/{key.lstrip('/')}", entry)
        if "breaker_failures" in self.case.get("before", {}):
            _set_breaker(self.service.database_url, self.session, self.case["before"])

    def _put(self, address: str, body: Json) -> httpx2.Response:
        """Escaped, so that half characters go over the wire too."""
        headers = {"Content-Type": "application/json"}
        return self.service.http.put(address, content=json.dumps(body).encode(), headers=headers)

    def _happen(self, when: str) -> None:
        for event in self.case.get("events", []):
            if event["when"] != when:
                continue
            if "append" in event:
                self.service.append(self.session, event["append"]).raise_for_status()
            if "enqueue" in event:
                self._enqueue(event["enqueue"])
            if event.get("cancel"):
                self._cancel()

    def _enqueue(self, trigger: str) -> None:
        answer = self.service.http.post("/v1/compactions", json={"session_id": self.session, "trigger": trigger})
        assert not answer.is_server_error, answer.text
        told = answer.json()
        if answer.is_error:
            self.jobs.append(NO_JOB | {"status": "failed", "error": {"code": told["code"]}})
        elif told["id"] not in {job.get("id") for job in self.jobs}:
            self.jobs.append(told)

    def _cancel(self) -> None:
        """Cancels the jobs that have not ended; a call stays open until the worker has heard of it."""
        for job in self.jobs:
            if not self._now(job)["done"]:
                self.service.http.post(f"/v1/compactions/{job['id']}/cancel").raise_for_status()
                self.service.until(partial(self._is_done, job), "a cancelled job did not end")

    def _settle(self, number: int) -> None:
        """Waits for one job; meanwhile whatever is to happen during a call happens."""

        def settled() -> bool:
            while self.awaited_calls and len(self.service.calls) >= self.awaited_calls[0]:
                self._happen(f"call:{self.awaited_calls.pop(0)}")
                self.service.fake.release()
            self.jobs[number] = self._now(self.jobs[number], wait_seconds=0 if self.awaited_calls else 5)
            return bool(self.jobs[number]["done"]) or _is_far(self.jobs[number])

        self.service.until(settled, f"job {number + 1} of {self.session} did not settle")

    def _is_done(self, job: Json) -> bool:
        return bool(self._now(job)["done"])

    def _now(self, job: Json, wait_seconds: int = 0) -> Json:
        if "id" not in job:
            return job
        return self.service.http.get(f"/v1/compactions/{job['id']}", headers={"Prefer": f"wait={wait_seconds}"}).json()


def _script(case: Json) -> Json:
    steps, limits = case["provider_script"], case.get("provider_limits", [])
    return {"steps": steps, "limits": limits, "time_divider": TIME_DIVIDER, "hold_calls": _held_calls(case)}


def _held_calls(case: Json) -> list[int]:
    moments = [event["when"].partition(":") for event in case.get("events", [])]
    return sorted({int(number) for kind, _, number in moments if kind == "call"})


def _is_far(job: Json) -> bool:
    """Whether its next attempt is more than an hour away."""
    return job["status"] == "retrying" and datetime.fromisoformat(job["not_before"]) > datetime.now(UTC) + HOUR


def _set_breaker(database_url: str, session: str, before: Mapping[str, Json]) -> None:
    """The breaker as earlier jobs would have left it; there is no call that fails a job on purpose."""
    failures = before["breaker_failures"]
    ago = before.get("opened_s_ago", 0 if failures >= OPENS_AT else None)
    with psycopg.connect(database_url.replace("+psycopg", "")) as connection:
        connection.execute(
            "INSERT INTO breakers (session_id, failures, opened_at, last_error_code)"
            " SELECT id, %s, now() - %s * interval '1 second', 'api_error' FROM sessions WHERE name = %s",
            (failures, ago, session),
        )
