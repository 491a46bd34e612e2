"""When a worker calls itself alive and ready, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from worker.scrape import STUCK_SECONDS, Health, Scrape


@dataclass
class Heart:
    """Stands for the heart of a process that is well."""

    draining: bool = False
    has_beaten: bool = True
    silent: float = 1.0

    def silent_seconds(self) -> float:
        """Since the last beat."""
        return self.silent


@dataclass
class Worker:
    """A worker's probes, and what they look at."""

    heart: Heart
    scrape: Scrape
    lag: list[float]

    def probe(self, path: str) -> tuple[int, str]:
        """Status and words."""
        answer = httpx2.get(f"http://127.0.0.1:{self.scrape.port}{path}")
        return answer.status_code, answer.text.strip()


@pytest.fixture
def worker() -> Iterator[Worker]:
    """A worker that is well and has started."""
    heart: Any = Heart()
    lag = [0.0]
    scrape = Scrape("127.0.0.1", 0, Health(heart, lambda: lag[0], lease_seconds=60))
    scrape.health.listens = True
    yield Worker(heart, scrape, lag)
    scrape.stop()


def test_a_worker_that_is_well_is_alive_and_ready(worker: Worker) -> None:
    assert worker.probe("/healthz") == (200, "ok")
    assert worker.probe("/readyz") == (200, "ok")
    assert worker.probe("/metrics")[0] == 200


def test_a_stuck_loop_is_no_life(worker: Worker) -> None:
    worker.lag[0] = STUCK_SECONDS + 1
    assert worker.probe("/healthz") == (503, "the loop has been stuck for 61 s")


def test_a_database_that_is_away_is_no_reason_to_restart(worker: Worker) -> None:
    worker.heart.silent = 61
    assert worker.probe("/healthz")[0] == 200
    assert worker.probe("/readyz") == (503, "no beat has been stored for 61 s")


def test_a_worker_is_not_ready_while_it_starts_or_drains(worker: Worker) -> None:
    worker.heart.has_beaten = False
    assert worker.probe("/readyz") == (503, "starting")
    worker.heart.has_beaten = True
    worker.scrape.health.listens = False
    assert worker.probe("/readyz") == (503, "starting")
    worker.scrape.health.listens = True
    worker.heart.draining = True
    assert worker.probe("/readyz") == (503, "draining")
