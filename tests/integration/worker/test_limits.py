"""The provider never sees more than allowed, however many workers there are and whatever happens to Redis."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ops.embedded import Valkey
from tests.integration.service import Service, history

WINDOW_SECONDS = 4.0  # instead of a minute
REQUESTS = 6
SLOTS = "20"


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[Valkey]:
    """A Redis that this test may stop."""
    with Valkey(tmp_path / "valkey") as server:
        yield server


@contextmanager
def limited(folder: Path, database_url: str, redis_url: str, **environ: str) -> Iterator[Service]:
    """A service of two workers whose provider allows REQUESTS per window."""
    limits = {
        "COMPACTD_LIMIT_REQUESTS_PER_MINUTE": str(REQUESTS),
        "COMPACTD_LIMIT_WINDOW_SECONDS": str(WINDOW_SECONDS),
        "COMPACTD_WORKER_CONCURRENCY": SLOTS,
        "COMPACTD_BACKOFF_BASE_SECONDS": "0.5",
    }
    with Service(folder, database_url, redis_url, **{**limits, **environ}) as service:
        service.start_worker()
        yield service


def most_in_a_window(service: Service) -> int:
    """The most calls that any window of the provider's own clock holds."""
    times = sorted(call.at for call in service.calls)
    return max(sum(1 for at in times if start <= at < start + WINDOW_SECONDS) for start in times)


def enqueue(service: Service, count: int) -> list[str]:
    for number in range(count):
        service.put_session(f"s{number}", history(4, characters=400))
    return [service.enqueue(f"s{number}")["id"] for number in range(count)]


def ended(service: Service, jobs: list[str]) -> list[tuple[str, int]]:
    """Status and attempt of each job at its end."""
    return [(job["status"], job["attempt"]) for job in map(service.wait, jobs)]


def test_two_workers_keep_to_one_limit_and_no_job_loses_an_attempt(
    tmp_path: Path, database_url: str, redis_url: str
) -> None:
    """20 calls at 6 a window take three more windows; jobs that must wait long give their slots back meanwhile."""
    with limited(tmp_path, database_url, redis_url) as service:
        jobs = enqueue(service, 20)
        assert ended(service, jobs) == [("succeeded", 1)] * 20
        assert len(service.calls) == 20
        assert most_in_a_window(service) <= REQUESTS


def test_a_redis_that_forgets_everything_again_and_again_lets_nobody_exceed_the_limit(
    tmp_path: Path, database_url: str, redis_url: str
) -> None:
    with limited(tmp_path, database_url, redis_url) as service:
        jobs = enqueue(service, 12)
        stop = threading.Event()
        flushing = threading.Thread(target=_flush_until, args=(service, stop))
        flushing.start()
        try:
            assert ended(service, jobs) == [("succeeded", 1)] * 12
        finally:
            stop.set()
            flushing.join()
        assert len(service.calls) == 12
        assert most_in_a_window(service) <= REQUESTS


def test_without_redis_the_workers_share_what_is_allowed(tmp_path: Path, database_url: str, own_valkey: Valkey) -> None:
    """Redis goes while jobs run: what the workers hold goes on, more slowly; the rest waits for its return."""
    with limited(tmp_path / "service", database_url, own_valkey.url()) as service:
        jobs = enqueue(service, 14)
        service.until(lambda: len(service.calls) >= REQUESTS, "no calls were made")
        own_valkey.stop()
        service.until(lambda: "limits.redis_lost" in service.log("worker"), "nobody noticed")
        own_valkey.spawn()
        assert ended(service, jobs) == [("succeeded", 1)] * 14
        assert len(service.calls) == 14
        assert most_in_a_window(service) <= REQUESTS


def test_a_tenant_has_no_more_calls_in_flight_than_it_may(tmp_path: Path, database_url: str, redis_url: str) -> None:
    unlimited = {"COMPACTD_LIMIT_REQUESTS_PER_MINUTE": "", "COMPACTD_LIMIT_TENANT_IN_FLIGHT": "2"}
    with limited(tmp_path, database_url, redis_url, **unlimited) as service:
        service.play([{"good_summary": {}, "delay_s": 0.7}])
        jobs = enqueue(service, 8)
        assert ended(service, jobs) == [("succeeded", 1)] * 8
        spans = [(call.at, call.ended_at or call.at) for call in service.calls]
        assert max(sum(1 for begun, end in spans if begun <= at < end) for at, _ in spans) <= 2


def test_a_429_with_retry_after_makes_everybody_wait_and_costs_no_attempt(
    tmp_path: Path, database_url: str, redis_url: str
) -> None:
    """The first call is refused for two seconds: no call of any worker comes before they are over."""
    refused = {"status": 429, "headers": {"retry-after": "2"}, "body": {"error": {"type": "rate_limit_error"}}}
    with limited(tmp_path, database_url, redis_url) as service:
        service.play([refused, {"good_summary": {}}])
        jobs = enqueue(service, 1)
        service.until(lambda: service.calls, "no call was made")
        service.put_session("other", history(4, characters=400))
        jobs.append(service.enqueue("other")["id"])
        assert ended(service, jobs) == [("succeeded", 1)] * 2
        first, *others = sorted(call.at for call in service.calls)
        assert min(others) - first >= 2.0


def _flush_until(service: Service, stop: threading.Event) -> None:
    while not stop.wait(0.7):
        service.flush_redis()
