"""Bulk deeds: counted before, bounded in a step, told truthfully, and in the log whatever comes between."""

from __future__ import annotations

import itertools
import re

import pytest
from fastapi import FastAPI

from api.dashboard import bulk_deeds
from compaction.core.backpressure import Caps
from compaction.settings import Settings
from tests.integration.api import stage
from tests.integration.api.conftest import RememberingDoorbell, speaking_to
from tests.integration.api.dashboard.visitor import key_for, visiting, words

pytestmark = pytest.mark.anyio
_numbers = itertools.count(1)


async def a_tenant_with_failures(app: FastAPI, count: int) -> tuple[str, list[str]]:
    """Its key, and its failed jobs, each of a session of its own."""
    key = await key_for(app, f"bulk-{next(_numbers)}")
    failed = []
    async with speaking_to(app, key) as client:
        for number in range(count):
            await client.put(f"/v1/sessions/s{number}", json={"model": "claude-haiku-4-5"})
            answer = await client.post("/v1/compactions", json={"session_id": f"s{number}", "trigger": "auto"})
            await stage.fail(app, answer.json()["id"])
            failed.append(answer.json()["id"])
    return key, failed


async def jobs_of(app: FastAPI, key: str, **params: str) -> list[str]:
    async with speaking_to(app, key) as client:
        answer = await client.get("/v1/compactions", params=params)
        return [job["id"] for job in answer.json()["data"]]


async def test_a_dry_run_counts_and_changes_nothing(app: FastAPI) -> None:
    key, failed = await a_tenant_with_failures(app, 3)
    async with visiting(app, key) as visitor:
        page = await visitor.text("/jobs/all?action=retry&status=failed&code=no_summary")
        assert "Retry 3 jobs?" in page
        assert "Retry 0 jobs?" in await visitor.text("/jobs/all?action=retry&code=timeout")
        assert "nothing to do" in await visitor.text("/jobs/all?action=cancel")
    assert sorted(await jobs_of(app, key)) == sorted(failed)


async def test_a_retry_makes_a_job_for_each_and_rings(app: FastAPI, doorbell: RememberingDoorbell) -> None:
    key, _ = await a_tenant_with_failures(app, 2)
    async with visiting(app, key) as visitor:
        answer = await visitor.post("/jobs/all", action="retry", status="failed", confirm="yes", counted="2")
        assert "2 jobs retried" in words(answer.text)
        again = await visitor.post("/jobs/all", action="retry", status="failed", confirm="yes", counted="2")
        assert "0 jobs retried" in words(again.text)  # their sessions have newer jobs now
        log = await visitor.text("/audit")
    queued = await jobs_of(app, key, status="queued")
    assert len(queued) == 2
    assert set(queued) & set(doorbell.rung)  # for the next one; the leading worker is woken for the others
    assert "jobs.retry status=failed 2" in log


async def test_the_deed_means_the_jobs_that_its_dry_run_counted(app: FastAPI) -> None:
    """Sent as the page gave it, at once: jobs that failed within the same second belong to it."""
    key, _ = await a_tenant_with_failures(app, 3)
    async with visiting(app, key) as visitor:
        html = (await visitor.get("/jobs/all?action=retry&status=failed")).text
        given = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', html))
        assert (given["counted"], given["action"], given["status"]) == ("3", "retry", "failed")
        answer = await visitor.http.post("/dashboard/jobs/all", data=given | {"confirm": "yes"})
        assert "3 jobs retried" in words(answer.text)


async def test_a_step_is_bounded_and_the_page_offers_to_go_on(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_deeds, "STEP", 2)
    key, _ = await a_tenant_with_failures(app, 3)
    async with visiting(app, key) as visitor:
        answer = await visitor.post("/jobs/all", action="retry", status="failed", confirm="yes")
        assert "2 jobs retried" in words(answer.text)
        assert "1 of this filter is left" in words(answer.text)
        assert "Go on with the rest" in words(answer.text)


async def test_what_fails_after_the_dry_run_is_not_part_of_it(app: FastAPI) -> None:
    """The dry run's moment is a hidden field of its form."""
    key, _ = await a_tenant_with_failures(app, 1)
    async with visiting(app, key) as visitor:
        answer = await visitor.post(
            "/jobs/all", action="retry", status="failed", confirm="yes", before="2026-01-01T00:00:00+00:00"
        )
        assert "0 jobs retried" in words(answer.text)


async def test_a_full_queue_stops_the_step_and_says_so(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    key, _ = await a_tenant_with_failures(app, 3)
    monkeypatch.setattr(Settings, "caps", Caps(tenant=1, everybody=None))
    async with visiting(app, key) as visitor:
        answer = await visitor.post("/jobs/all", action="retry", status="failed", confirm="yes")
        assert "1 job retried" in words(answer.text)
        assert "Stopped early: 1 jobs of this tenant wait already." in words(answer.text)
        assert "2 of this filter are left" in words(answer.text)
        assert "problem: 1 jobs of this tenant wait already" in await visitor.text("/audit")


async def test_waiting_jobs_are_cancelled_and_ended_ones_left_alone(app: FastAPI) -> None:
    key, failed = await a_tenant_with_failures(app, 2)
    async with speaking_to(app, key) as client:
        waiting = (await client.post("/v1/compactions", json={"session_id": "s0"})).json()["id"]
    async with visiting(app, key) as visitor:
        answer = await visitor.post("/jobs/all", action="cancel", confirm="yes")
        assert "1 job cancelled" in words(answer.text)
    assert await jobs_of(app, key, status="cancelled") == [waiting]
    assert sorted(await jobs_of(app, key, status="failed")) == sorted(failed)


async def test_breakers_of_the_filters_sessions_are_reset(app: FastAPI) -> None:
    key, _ = await a_tenant_with_failures(app, 1)
    async with speaking_to(app, key) as client:
        for _ in range(2):
            answer = await client.post("/v1/compactions", json={"session_id": "s0", "trigger": "auto"})
            await stage.fail(app, answer.json()["id"])
        assert (await client.get("/v1/sessions/s0/breaker")).json()["state"] == "open"
        async with visiting(app, key) as visitor:
            await visitor.post("/jobs/all", action="retry", status="failed", confirm="yes", breakers="1")
        assert (await client.get("/v1/sessions/s0/breaker")).json()["state"] == "closed"


@pytest.mark.parametrize("fields", [{"action": "retry"}, {"action": "delete", "confirm": "yes"}, {"confirm": "yes"}])
async def test_a_form_that_says_too_little_changes_nothing(app: FastAPI, fields: dict[str, str]) -> None:
    key, failed = await a_tenant_with_failures(app, 1)
    async with visiting(app, key) as visitor:
        answer = await visitor.post("/jobs/all", **fields)
        assert answer.status_code == 422
        assert "Nothing was changed" in words(answer.text)
    assert await jobs_of(app, key) == failed
