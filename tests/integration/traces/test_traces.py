"""One trace leads from the request that enqueued a job over its attempts to each model call, without content."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ops.embedded import Valkey
from tests.integration.service import ROOT, Service, history
from tests.integration.traces.collector import Collector, Seen

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
SAID = "TASK-1001"  # stands in the first message of every history
BROKEN = {"status": 400, "body": {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """Where the spans go."""
    with Collector() as listening:
        yield listening


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey, collector: Collector
) -> Iterator[Service]:
    """A service that sends its spans every tenth of a second."""
    folder = tmp_path_factory.mktemp("traced")
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20collectors-own",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    with Service(folder, module_database_url, valkey.url(), **settings) as running:
        yield running


def compacted(service: Service, name: str, **headers: str) -> dict[str, object]:
    """The ended job of a new session."""
    service.put_session(name, history(20))
    body = {"session_id": name, "trigger": "manual", "instructions": f"Keep {SAID}."}
    job = service.http.post("/v1/compactions", json=body, headers=headers).json()
    ended: dict[str, object] = service.wait(job["id"])
    return ended


def logged(service: Service, name: str) -> list[dict[str, str]]:
    """The lines of a log; Celery's goodbye on standard output is none."""
    return [json.loads(line) for line in service.log(name).splitlines() if line.startswith("{")]


def spans_of(service: Service, collector: Collector, job_id: object, names: set[str]) -> dict[str, Seen]:
    """The spans of the job's trace by their names, once those are there."""

    def look() -> dict[str, Seen] | None:
        asked = [seen for seen in collector.spans if seen.facts.get("compactd.job.id") == job_id]
        traces = {seen.trace_id for seen in asked}
        found = {seen.name: seen for seen in collector.spans if seen.trace_id in traces}
        return found if names <= set(found) else None

    found: dict[str, Seen] = service.until(look, f"the spans {names} did not all come")
    return found


CHAT = "chat claude-haiku-4-5"
WANTED = {"POST /v1/compactions", "compaction.attempt", CHAT}


def test_a_callers_trace_goes_on_from_the_api_over_the_worker_to_the_model_call(
    service: Service, collector: Collector
) -> None:
    job = compacted(service, "traced", traceparent=f"00-{TRACE}-{CALLER}-01")
    assert job["status"] == "succeeded"
    spans = spans_of(service, collector, job["id"], WANTED)
    request, attempt, call = (spans[name] for name in ("POST /v1/compactions", "compaction.attempt", CHAT))

    assert {seen.trace_id for seen in (request, attempt, call)} == {TRACE}
    assert (request.parent_id, attempt.parent_id, call.parent_id) == (CALLER, request.span_id, attempt.span_id)
    assert (request.service, attempt.service, call.service) == ("compactd-api", "compactd-worker", "compactd-worker")
    assert request.facts["http.response.status_code"] == 202
    assert attempt.facts["compactd.job.status"] == "succeeded"
    assert attempt.facts["compactd.session.id"] == "traced"
    result = service.result(str(job["id"]))
    assert attempt.facts["compactd.result.post_tokens"] == result["post_tokens"]
    assert call.facts["gen_ai.usage.output_tokens"] == result["usage"]["output_tokens"]


def test_without_a_callers_trace_the_request_begins_one_and_the_logs_name_it(
    service: Service, collector: Collector
) -> None:
    job = compacted(service, "begun")
    spans = spans_of(service, collector, job["id"], WANTED)
    request, attempt = spans["POST /v1/compactions"], spans["compaction.attempt"]

    assert request.parent_id == ""
    assert attempt.parent_id == request.span_id
    for name in ("api", "worker"):
        told = logged(service, name)
        assert any(line.get("trace_id") == request.trace_id for line in told), name


def test_a_trace_that_the_caller_does_not_record_is_not_recorded(service: Service, collector: Collector) -> None:
    quiet = "0" * 31 + "7"
    compacted(service, "unrecorded", traceparent=f"00-{quiet}-{CALLER}-00")
    job = compacted(service, "recorded-after-it")
    spans_of(service, collector, job["id"], WANTED)

    assert [seen for seen in collector.spans if seen.trace_id == quiet] == []


def test_a_failed_attempt_tells_its_code(service: Service, collector: Collector) -> None:
    service.play([BROKEN] * 8)
    job = compacted(service, "failing")
    service.play()
    spans = spans_of(service, collector, job["id"], WANTED)

    assert job["status"] == "failed"
    assert (spans["compaction.attempt"].error, spans[CHAT].error) == ("api_error", "api_error")


def test_spans_carry_the_collectors_headers_and_no_content(service: Service, collector: Collector) -> None:
    job = compacted(service, "quiet")
    spans_of(service, collector, job["id"], WANTED)

    assert {headers["authorization"] for headers in collector.headers} == {"Bearer collectors-own"}
    for private in (SAID, "Reading part", "sk-test-key", "value = compute"):
        assert private.encode() not in collector.raw
    assert {seen.name for seen in collector.spans} & {"GET /healthz", "GET /readyz", "GET /metrics"} == set()


def test_a_collector_that_is_away_disturbs_nobody(
    tmp_path_factory: pytest.TempPathFactory, database_url: str, valkey: Valkey
) -> None:
    folder = tmp_path_factory.mktemp("untraced")
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_BSP_SCHEDULE_DELAY": "100"}
    with Service(folder, database_url, valkey.url(), **settings) as alone:
        assert compacted(alone, "alone")["status"] == "succeeded"
    lines = [line for name in ("api", "worker") for line in logged(alone, name)]
    assert [line for line in lines if line["level"] == "error" and not line["part"].startswith("opentelemetry")] == []


HIDING = "import sys, runpy; sys.modules['opentelemetry.sdk'] = None; runpy.run_module('{}', run_name='__main__')"


@pytest.mark.parametrize("name", ["api", "worker"])
def test_without_the_extra_the_setting_is_refused_in_words(name: str) -> None:
    environ = {
        **os.environ,
        "COMPACTD_DATABASE_URL": "postgresql+psycopg://nobody:none@127.0.0.1:1/none",
        "COMPACTD_REDIS_URL": "redis://127.0.0.1:1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
    }
    command = [sys.executable, "-c", HIDING.format(name)]
    ended = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert "Install it, or unset the variable." in ended.stderr
    assert "Traceback" not in ended.stderr
