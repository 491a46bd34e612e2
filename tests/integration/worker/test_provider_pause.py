"""Trouble that is the provider's stops everybody who uses that credential, keeps their jobs, and passes by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.service import Service, history

REFUSED = {"status": 401, "body": {"type": "error", "error": {"type": "authentication_error", "message": "invalid"}}}
NO_CREDIT = {
    "status": 400,
    "body": {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."},
    },
}
OVERLOADED = {"status": 529, "body": {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}}
GOOD: dict[str, Any] = {"good_summary": {}}
OTHER_KEY = {"steps": [GOOD], "api_key": "sk-another-key"}  # ours is refused by every route


@pytest.fixture
def service(tmp_path: Path, database_url: str, redis_url: str) -> Iterator[Service]:
    """A service of its own with one worker."""
    with Service(tmp_path, database_url, redis_url) as running:
        yield running


def provider(service: Service) -> dict[str, Any]:
    """The one provider that was ever paused, as operators see it; nothing before that."""
    listed: list[dict[str, Any]] = service.http.get("/v1/providers").json()["data"]
    return listed[0] if listed else {"state": "open"}


def stored(service: Service, count: int) -> list[str]:
    for number in range(count):
        service.put_session(f"s{number}", history(4, characters=400))
    return [f"s{number}" for number in range(count)]


def test_a_refused_key_fails_the_job_that_finds_out_and_keeps_all_others(service: Service) -> None:
    """One failed job, no breaker; the others wait without a call until the key works again."""
    service.play(OTHER_KEY)
    others = stored(service, 4)
    service.put_session("first", history(30), settings={"context_window": 30_000})
    failed = service.compact("first", trigger="auto")
    assert (failed["status"], failed["error"]["code"]) == ("failed", "auth_error")
    assert provider(service)["state"] == "paused"
    assert provider(service)["reason"] == "auth_error"
    ready = service.http.get("/readyz").json()
    assert (ready["status"], ready["parts"]["providers"]["ok"]) == ("degraded", False)
    assert service.http.get("/v1/sessions/first/breaker").json()["failures"] == 0

    waiting = [service.enqueue(session)["id"] for session in others]
    service.until(lambda: provider(service)["failed_probes"] >= 2, "nobody probed")
    assert {service.job(job)["status"] for job in waiting} == {"queued"}
    told = service.until(lambda: service.job(waiting[0])["progress"], "nobody says why the job waits")
    assert (told["step"], told["reason"], told["cause"]) == ("waiting", "provider_paused", "auth_error")
    assert told["until"]
    assert len(service.calls) <= 1  # the refused one, unless the count of its tokens was refused before

    service.play()
    assert [service.wait(job)["status"] for job in waiting] == ["succeeded"] * 4
    assert (provider(service)["state"], provider(service)["trips"]) == ("open", 0)
    for words in ("provider.paused", "provider.on_trial", "provider.resumed"):
        assert words in service.log("worker")


def test_after_a_pause_one_job_tries_and_only_then_the_others_go(service: Service) -> None:
    """The probe cannot see an empty account: the first call does, and nobody else pays for finding out again."""
    service.play([NO_CREDIT])
    sessions = stored(service, 6)
    assert service.compact(sessions[0])["error"]["code"] == "billing_error"
    jobs = [service.enqueue(session)["id"] for session in sessions[1:]]
    service.until(lambda: provider(service)["trips"] >= 2, "no trial")
    service.play()
    ends = [service.wait(job) for job in jobs]
    codes = [job["error"]["code"] for job in ends if job["status"] == "failed"]
    assert len(codes) <= 2  # of at most three: one of them was the first
    assert set(codes) <= {"billing_error"}
    assert all(job["attempt"] == 1 for job in ends)


def test_jobs_that_were_on_their_way_when_the_key_was_refused_go_back_to_the_queue(service: Service) -> None:
    """Ten calls in flight at once, all refused: one job fails, nine keep their attempt and are done in the end."""
    service.play([REFUSED | {"delay_s": 1.0}])
    jobs = [service.enqueue(session)["id"] for session in stored(service, 10)]
    service.until(lambda: len(service.calls) == 10, "not all calls were made")
    service.until(lambda: provider(service)["state"] != "open", "not paused")
    service.play()
    ends = [service.wait(job) for job in jobs]
    assert sorted(job["status"] for job in ends) == ["failed"] + ["succeeded"] * 9
    assert {job["attempt"] for job in ends} == {1}


def test_an_outage_pauses_for_everybody_and_fails_nobody(service: Service) -> None:
    """Ten jobs meet an overloaded provider: within a few calls all wait; no attempt is lost after that."""
    service.play([OVERLOADED])
    jobs = [service.enqueue(session)["id"] for session in stored(service, 10)]
    service.until(lambda: provider(service)["state"] == "paused", "not paused")
    assert provider(service)["reason"] == "overloaded"
    service.until(lambda: provider(service)["trips"] >= 2, "no trial failed")
    calls = len(service.calls)
    assert calls <= 10 * 2 + 3
    service.play()
    ends = [service.wait(job) for job in jobs]
    assert [job["status"] for job in ends] == ["succeeded"] * 10
    assert max(job["attempt"] for job in ends) <= 3


def test_an_operator_resumes_a_provider_at_once(service: Service) -> None:
    service.play(OTHER_KEY)
    sessions = stored(service, 2)
    service.compact(sessions[0])
    name = provider(service)["name"]
    waiting = service.enqueue(sessions[1])["id"]
    service.until(lambda: provider(service)["failed_probes"] >= 3, "nobody probed")  # the next one is far away
    service.play()
    answer = service.http.post(f"/v1/providers/{name}/resume")
    assert (answer.status_code, answer.json()["state"]) == (200, "open")
    assert service.wait(waiting)["status"] == "succeeded"
    assert service.http.post("/v1/providers/claude-unknown/resume").status_code == 404


def test_a_worker_with_another_key_goes_on(service: Service) -> None:
    """The pause belongs to the credential: whoever starts a worker with a good key need not wait for anything."""
    service.play(OTHER_KEY)
    sessions = stored(service, 2)
    service.compact(sessions[0])
    waiting = service.enqueue(sessions[1])["id"]
    service.start_worker(ANTHROPIC_API_KEY="sk-another-key")
    assert service.wait(waiting)["status"] == "succeeded"
    assert provider(service)["state"] == "paused"
    assert not service.http.get("/readyz").json()["parts"]["providers"]["ok"]
    service.workers[0].stop()  # the last one with the refused key
    assert service.http.get("/readyz").json()["status"] == "ready"
