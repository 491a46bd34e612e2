"""Workers that die, stop and are told to go, with jobs in their hands."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg
import pytest

from ops.embedded import Valkey
from tests.integration.service import Service, history

SLOW = [{"good_summary": {}, "delay_s": 3.0}]


@pytest.fixture
def service(tmp_path: Path, database_url: str, valkey: Valkey) -> Service:
    """A service of its own, not started."""
    return Service(tmp_path, database_url, valkey.url())


def test_a_killed_workers_job_is_finished_by_another_after_the_lease(service: Service) -> None:
    """Two calls, one result; the dead worker's attempt stays on record."""
    with service:
        service.play(SLOW)
        service.put_session("s", history(10))
        job = service.enqueue("s")
        service.until(lambda: service.calls, "no call was made")
        service.kill_workers()
        service.play()
        service.start_worker()
        ended = service.wait(job["id"])
        assert (ended["status"], ended["attempt"]) == ("succeeded", 2)
        assert len(service.calls) == 1
        assert service.result(job["id"])["covers_through_seq"] == len(history(10))
        assert [message["role"] for message in service.view("s", "live")] == ["system", "user", "user"]


def test_a_frozen_worker_that_wakes_up_after_its_lease_writes_nothing(service: Service) -> None:
    with service:
        service.play(SLOW)
        service.put_session("s", history(10))
        job = service.enqueue("s")
        service.until(lambda: service.calls, "no call was made")
        frozen = service.workers[0]
        frozen.signal(signal.SIGSTOP)
        service.play()
        service.start_worker()
        assert service.wait(job["id"])["attempt"] == 2
        first = service.result(job["id"])
        frozen.signal(signal.SIGCONT)
        service.until(lambda: "lease_lost" in service.log("worker") or "fenced" in service.log("worker"), "no fence")
        assert service.result(job["id"]) == first


def crashes(service: Service, job_id: str) -> int:
    with psycopg.connect(service.database_url.replace("+psycopg", "")) as conn:
        [(found,)] = conn.execute("SELECT crashes FROM jobs WHERE id = %s", (job_id,)).fetchall()
    return int(found)


def test_a_frozen_worker_that_wakes_up_in_time_takes_back_the_crash(service: Service) -> None:
    with service:
        service.play([{"good_summary": {}, "delay_s": 12.0}])
        service.put_session("s", history(10))
        job = service.enqueue("s")
        service.until(lambda: service.calls, "no call was made")
        frozen = service.workers[0]
        frozen.signal(signal.SIGSTOP)
        service.start_worker()
        service.until(lambda: crashes(service, job["id"]) == 1, "nobody reaped")
        frozen.signal(signal.SIGCONT)
        service.until(lambda: crashes(service, job["id"]) == 0, "the crash stayed")
        assert service.wait(job["id"])["status"] == "succeeded"


def test_a_worker_told_to_go_gives_its_jobs_back_without_using_up_the_attempt(service: Service) -> None:
    with service:
        service.play([{"good_summary": {}, "delay_s": 30.0}])
        service.put_session("s", history(10))
        job = service.enqueue("s")
        service.until(lambda: service.calls, "no call was made")
        leaving = service.workers.pop()
        service.start_worker()
        service.play()
        leaving.signal(signal.SIGTERM)
        ended = service.wait(job["id"])
        assert (ended["status"], ended["attempt"]) == ("succeeded", 1)
        service.until(lambda: not leaving.is_alive, "the worker did not end")
        assert leaving.returncode == 0


def test_a_running_job_is_cancelled_and_its_call_closed(service: Service) -> None:
    with service:
        service.play([{"good_summary": {}, "delay_s": 30.0}])
        service.put_session("s", history(10))
        job = service.enqueue("s")
        service.until(lambda: service.calls, "no call was made")
        assert service.http.post(f"/v1/compactions/{job['id']}/cancel").status_code in (200, 202)
        ended = service.wait(job["id"])
        assert (ended["status"], ended["error"]["code"]) == ("cancelled", "cancelled")
        service.until(lambda: service.calls[0].outcome == "disconnected", "the call stayed open")
        assert len(service.view("s", "live")) == len(history(10))


def test_a_lost_doorbell_is_rung_again(service: Service) -> None:
    """Redis forgets everything while no worker listens; the row is still there."""
    with service:
        service.kill_workers()
        service.put_session("s", history(10))
        job = service.enqueue("s")
        service.flush_redis()
        service.start_worker()
        assert service.wait(job["id"])["status"] == "succeeded"
