"""A producer's round through the running service: traced, followed as a stream, taken over, twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.integration.service import Service, history

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture(autouse=True)
def good_answers(service: Service) -> None:
    service.play()


def prefix_hash(messages: Sequence[Mapping[str, Any]]) -> str:
    """The recipe of docs/api.md, for content without fractions."""
    last = ""
    for message in messages:
        turn = {"content": message["content"], "role": message["role"]}
        text = json.dumps(turn, sort_keys=True, separators=(",", ":"))
        last = hashlib.sha256((last + text).encode("ascii")).hexdigest()
    return last


def test_the_callers_trace_stands_in_the_workers_log(service: Service) -> None:
    service.put_session("traced", history(10))
    headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    body = {"session_id": "traced", "trigger": "manual"}
    job = service.http.post("/v1/compactions", json=body, headers=headers).json()
    service.wait(job["id"])
    found = service.until(
        lambda: [json.loads(line) for line in service.log("worker").splitlines() if f'"trace_id": "{TRACE}"' in line],
        "no line of the worker names the trace",
    )
    assert {line["job_id"] for line in found if "job_id" in line} == {job["id"]}


def test_a_stream_follows_a_job_to_its_end_and_closes(service: Service) -> None:
    service.put_session("streamed", history(10))
    job = service.enqueue("streamed")
    headers = {"Accept": "text/event-stream"}
    with service.http.stream("GET", f"/v1/compactions/{job['id']}/events", headers=headers) as answer:
        lines = list(answer.iter_lines())  # ends because the server ends it
    names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
    assert names[-2:] == ["tengu_compact", "end"]
    end = json.loads(lines[max(place for place, line in enumerate(lines) if line == "event: end") + 1][len("data: ") :])
    assert end == service.job(job["id"])


def test_a_producer_swaps_its_copy_twice_and_is_never_stale(service: Service) -> None:
    """It hashes what it holds: first its own messages, then what the first swap gave and what it appended since."""
    mine: list[dict[str, Any]] = history(12)
    service.put_session("swapped", mine)
    covered = len(mine)
    for round_number in (1, 2):
        job = service.compact("swapped", trigger="manual")
        assert job["status"] == "succeeded", job["error"]
        later = {"role": "user", "content": f"And then? {round_number}"}
        assert service.append("swapped", [later]).status_code == 200
        answer = service.http.post(f"/v1/compactions/{job['id']}/apply", json={"prefix_hash": prefix_hash(mine)})
        assert answer.status_code == 200, answer.text
        taken = answer.json()
        assert (taken["covers_through_seq"], taken["head_seq"]) == (covered, covered + 1)
        assert [message["content"] for message in taken["messages"]] == [later["content"]]
        assert taken["api_messages"] == service.view("swapped", "api")
        more = history(12)[1:]
        mine = [*taken["api_messages"], *more]
        assert service.append("swapped", more).status_code == 200
        covered += 1 + len(more)


def test_a_copy_that_moved_is_stale_and_told_where(service: Service) -> None:
    service.put_session("moved", history(12))
    job = service.compact("moved")
    rewound = [*history(12)[:3], {"role": "user", "content": "Another way."}]
    hashes = [prefix_hash(rewound[:count]) for count in range(1, len(rewound) + 1)]
    body = {"prefix_hash": hashes[-1], "hashes": hashes}
    answer = service.http.post(f"/v1/compactions/{job['id']}/apply", json=body)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (409, "stale")
    assert (problem["first_differing_index"], problem["length"]) == (3, len(history(12)))
