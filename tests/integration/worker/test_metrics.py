"""What Prometheus is told by a running API and a running worker."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ops.embedded import Valkey
from ops.metric_names import served
from tests.integration.service import Service, history

BROKEN = {"status": 400, "body": {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}}
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory, module_database_url: str, valkey: Valkey) -> Iterator[Service]:
    """A service whose worker serves its metrics on any free port."""
    folder = tmp_path_factory.mktemp("scraped")
    with Service(folder, module_database_url, valkey.url(), COMPACTD_METRICS_PORT="0") as service:
        yield service


def samples(text: str) -> Samples:
    """The samples by name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def worker_urls(service: Service) -> list[str]:
    """Where the workers serve their metrics, the newest one last."""
    ready = sorted(service.folder.glob("worker-*.ready"), key=lambda path: path.stat().st_mtime_ns)
    return [f"http://127.0.0.1:{json.loads(path.read_text())['metrics_port']}/metrics" for path in ready]


def worker_samples(service: Service) -> Samples:
    """What the newest worker tells."""
    return samples(httpx2.get(worker_urls(service)[-1]).text)


def value(found: Samples, name: str, **labels: str) -> float:
    """One sample; 0 where nothing was counted yet."""
    return found.get((f"compaction_{name}", tuple(sorted(labels.items()))), 0.0)


def test_a_finished_job_is_counted_once_with_its_tokens(scraped: Service) -> None:
    scraped.play()
    before = worker_samples(scraped)
    scraped.put_session("counted", history(20))
    job = scraped.compact("counted")
    assert job["status"] == "succeeded"
    result = scraped.result(job["id"])
    after = worker_samples(scraped)

    def grown(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert grown("jobs_claimed_total", kind="manual") == 1
    assert grown("jobs_succeeded_total", kind="manual", reason="") == 1
    assert grown("llm_requests_total") == len(scraped.calls)
    assert grown("results_total", strategy=result["strategy"]) == 1
    assert grown("tokens_before_total") == result["pre_tokens"]
    assert grown("tokens_after_total") == result["post_tokens"]
    output = grown("llm_tokens_total", model="claude-haiku-4-5", type="output")
    assert output == result["usage"]["output_tokens"]
    assert grown("job_end_to_end_seconds_count", kind="manual") == 1
    assert grown("job_queue_wait_seconds_count", kind="manual") == 1


def test_a_failed_job_is_counted_with_its_error_code(scraped: Service) -> None:
    scraped.play([BROKEN] * 8)
    scraped.put_session("failing", history(20))
    job = scraped.compact("failing")
    assert job["status"] == "failed"
    told = worker_samples(scraped)
    assert value(told, "jobs_failed_total", kind="manual", reason=job["error"]["code"]) == 1


def test_the_api_counts_what_it_accepts_by_route_and_never_by_path(scraped: Service) -> None:
    scraped.play()
    scraped.put_session("private-name", history(20))
    scraped.compact("private-name")
    text = httpx2.get(f"{scraped.http.base_url}/metrics").text
    told = samples(text)
    assert value(told, "jobs_enqueued_total", kind="manual") >= 1
    assert value(told, "api_requests_total", method="POST", route="/v1/compactions", status="202") >= 1
    assert "private-name" not in text


def test_only_the_leader_tells_the_state_of_the_queue(scraped: Service) -> None:
    led = scraped.until(
        lambda: (found := worker_samples(scraped)) and value(found, "reconciler_leader") and found, "nobody leads"
    )
    assert value(led, "worker_slots", state="total") == 20
    assert ("compaction_jobs", (("kind", "manual"), ("state", "queued"))) in led
    scraped.start_worker()
    follower = worker_samples(scraped)
    assert value(follower, "reconciler_leader") == 0
    assert not any(name == "compaction_jobs" for name, _ in follower)


def test_what_is_documented_is_what_is_served(scraped: Service) -> None:
    """Every name that the registries and the leader's list promise stands in a scrape of the running processes."""
    texts = [httpx2.get(f"{scraped.http.base_url}/metrics").text]
    texts += [httpx2.get(url).text for url in worker_urls(scraped)]
    families = {
        family.name + ("_total" if family.type == "counter" else "")
        for text in texts
        for family in text_string_to_metric_families(text)
    }
    assert families >= served()


def test_a_dead_worker_shows_as_an_expired_lease(scraped: Service) -> None:
    scraped.play({"hold_calls": [1]})
    scraped.put_session("orphan", history(20))
    job = scraped.enqueue("orphan")
    scraped.until(lambda: scraped.job(job["id"])["status"] == "running", "the job did not start")
    scraped.play()
    for worker in scraped.workers:
        worker.signal(signal.SIGKILL)
    scraped.start_worker()
    assert scraped.wait(job["id"])["status"] == "succeeded"
    assert value(worker_samples(scraped), "lease_expired_total") >= 1
