"""Workers that are told to go, once or twice, or that have grown too large."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.service import Service, history

SLOW = [{"good_summary": {}, "delay_s": 30.0}]


@pytest.fixture
def service(tmp_path: Path, database_url: str, redis_url: str) -> Iterator[Service]:
    """A service whose workers have a minute to end."""
    with Service(tmp_path, database_url, redis_url, COMPACTD_DRAIN_SECONDS="60") as running:
        yield running


def test_a_leaving_worker_finishes_what_it_has_takes_nothing_new_and_exits_with_0(service: Service) -> None:
    service.play([{"good_summary": {}, "delay_s": 4.0}])
    for name in ("running", "later"):
        service.put_session(name, history(4, characters=400))
    running = service.enqueue("running")["id"]
    service.until(lambda: service.calls, "no call was made")
    leaving = service.workers.pop()
    leaving.signal(signal.SIGTERM)
    later = service.enqueue("later")["id"]
    done = service.wait(running)
    assert (done["status"], done["attempt"]) == ("succeeded", 1)
    service.until(lambda: not leaving.is_alive, "the worker did not end")
    assert leaving.returncode == 0
    assert service.job(later)["status"] == "queued"
    assert len(service.calls) == 1
    service.start_worker()
    assert service.wait(later)["status"] == "succeeded"


def test_a_second_signal_gives_the_jobs_back_at_once(service: Service) -> None:
    """The call would take half a minute and the drain a whole one; the other worker has the job long before."""
    service.play(SLOW)
    service.put_session("s", history(4, characters=400))
    job_id = service.enqueue("s")["id"]
    service.until(lambda: service.calls, "no call was made")
    leaving = service.workers.pop()
    service.start_worker()
    service.play()
    leaving.signal(signal.SIGTERM)
    leaving.signal(signal.SIGTERM)
    service.until(lambda: not leaving.is_alive, "the worker did not end")
    assert leaving.returncode == 0
    done = service.wait(job_id)
    assert (done["status"], done["attempt"]) == ("succeeded", 1)


def test_a_worker_that_has_grown_too_large_ends_in_order(service: Service) -> None:
    """64 MiB is less than its imports take: it notices at once, gives its job a chance, and exits with 0."""
    service.workers.pop().stop()
    large = service.start_worker(COMPACTD_WORKER_MAX_RSS_MB="64")
    service.workers.remove(large)
    service.until(lambda: not large.is_alive, "the worker did not end")
    assert large.returncode == 0
    assert "memory.over_limit" in service.log("worker")
    service.put_session("s", history(4, characters=400))
    job_id = service.enqueue("s")["id"]
    service.start_worker()
    assert service.wait(job_id)["status"] == "succeeded"
