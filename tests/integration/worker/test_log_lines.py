"""The logs: JSON, one line for each thing that happens to a job, with its ids, and nothing that was said."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.service import Service, history

BROKEN = {"status": 400, "body": {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}}
CELERYS_GOODBYE = "worker: Warm shutdown (MainProcess)"  # on standard output, when it is told to go


def about(service: Service, process: str, job_id: str) -> list[dict[str, Any]]:
    """What a process logged of a job."""
    lines = [json.loads(line) for line in service.log(process).splitlines() if job_id in line]
    return [line for line in lines if line["event"] != "request"]


def finished(service: Service, job_id: str) -> list[dict[str, Any]]:
    """The ends of a job's attempts; the last one is written right after its commit."""

    def look() -> list[dict[str, Any]]:
        return [line for line in about(service, "worker", job_id) if line["event"] == "job.finished"]

    found: list[dict[str, Any]] = service.until(look, "the worker logged no end")
    return found


def test_a_job_that_succeeds_is_two_lines(service: Service) -> None:
    service.play()
    service.put_session("logged", history(20))
    job = service.compact("logged")
    result = service.result(job["id"])

    (accepted,) = about(service, "api", job["id"])
    (ended,) = finished(service, job["id"])
    ids = {"job_id": job["id"], "session_id": "logged"}
    assert ids.items() <= accepted.items()
    assert (accepted["event"], accepted["trigger"], accepted["coalesced"]) == ("job.enqueued", "manual", False)
    assert ids.items() <= ended.items()
    assert (ended["status"], ended["attempt"], ended["strategy"]) == ("succeeded", 1, result["strategy"])
    assert ended["session_tokens"] == [result["pre_tokens"], result["post_tokens"]]
    assert about(service, "worker", job["id"]) == [ended]


def test_a_job_that_fails_says_its_code(service: Service) -> None:
    service.play([BROKEN] * 8)
    service.put_session("logged-failing", history(20))
    job = service.compact("logged-failing")
    service.play()

    (ended,) = finished(service, job["id"])
    assert (ended["status"], ended["code"]) == ("failed", job["error"]["code"])


def test_every_line_is_json_with_time_level_service_and_part(service: Service) -> None:
    for process in ("api", "worker"):
        lines = [line for line in service.log(process).splitlines() if line != CELERYS_GOODBYE]
        assert lines, process
        for line in lines:
            told = json.loads(line)
            assert {"event", "level", "timestamp", "service", "part"} <= set(told), line
            assert told["service"] == process
