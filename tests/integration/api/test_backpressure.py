"""What a producer and an operator see when too much waits or the model's API is shut."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI

from api.app import create_app
from compaction.settings import Settings
from compaction.store import pauses, workers
from tests.integration.api.conftest import KEY, RememberingDoorbell, speaking_to
from tests.integration.api.stage import database_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def bell() -> RememberingDoorbell:
    return RememberingDoorbell()


@pytest.fixture
async def small(settings: Settings, bell: RememberingDoorbell, database_url: str) -> AsyncIterator[FastAPI]:
    """An application where two jobs of a tenant may wait and three of all."""
    tight = {"database_url": database_url, "tenant_waiting_jobs": 2, "waiting_jobs": 3}
    application = create_app(settings.model_copy(update=tight), doorbell=bell)
    async with application.router.lifespan_context(application):
        yield application


async def tenant(app: FastAPI, name: str, scopes: list[str]) -> str:
    async with speaking_to(app, KEY) as admin:
        answer = await admin.post("/v1/api-keys", json={"tenant": name, "scopes": scopes})
        return str(answer.json()["key"])


async def enqueue(client: httpx2.AsyncClient, session: str, **fields: str) -> httpx2.Response:
    await client.put(f"/v1/sessions/{session}", json={"model": "claude-haiku-4-5"})
    return await client.post("/v1/compactions", json={"session_id": session, "trigger": "manual"} | fields)


PRODUCER = ["sessions:write", "jobs:write", "read"]


async def test_a_third_waiting_job_is_refused_with_429_and_when_to_come_again(small: FastAPI) -> None:
    async with speaking_to(small, await tenant(small, "a", PRODUCER)) as client:
        assert [(await enqueue(client, name)).status_code for name in ("s1", "s2")] == [202, 202]
        refused = await enqueue(client, "s3")
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert int(refused.headers["retry-after"]) >= 1
        joined = await enqueue(client, "s1")
        assert (joined.status_code, joined.json()["coalesced"]) == (200, 1)


async def test_a_full_queue_refuses_everybody_with_503(small: FastAPI) -> None:
    async with speaking_to(small, await tenant(small, "a", PRODUCER)) as client:
        for name in ("s1", "s2"):
            await enqueue(client, name)
    async with speaking_to(small, await tenant(small, "b", PRODUCER)) as client:
        assert (await enqueue(client, "s1")).status_code == 202
        refused = await enqueue(client, "s2")
        assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
        assert int(refused.headers["retry-after"]) >= 1


async def test_an_inline_job_that_is_refused_leaves_none_of_its_messages(small: FastAPI) -> None:
    body = {"model": "claude-haiku-4-5", "messages": [{"role": "user", "content": "Hi"}]}
    async with speaking_to(small, await tenant(small, "a", PRODUCER)) as client:
        answers = [(await client.post("/v1/compactions", json=body)).status_code for _ in range(3)]
        assert answers == [202, 202, 429]
        retried = await client.post("/v1/compactions", json=body, headers={"Idempotency-Key": "free-again"})
        assert retried.status_code == 429
    async with database_of(small).connect() as conn:
        counts = await conn.exec_driver_sql(
            "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM messages), "
            "(SELECT count(*) FROM idempotency_keys)"
        )
        assert tuple(counts.one()) == (2, 2, 0)


async def test_only_a_job_that_nothing_waits_ahead_of_is_rung_for(small: FastAPI, bell: RememberingDoorbell) -> None:
    """The first one; the second waits behind it and is the leader's to place, as is any bulk job."""
    async with speaking_to(small, await tenant(small, "a", PRODUCER)) as client:
        first = await enqueue(client, "s1")
        await enqueue(client, "s2")
    async with speaking_to(small, await tenant(small, "b", PRODUCER)) as client:
        await enqueue(client, "s1", trigger="bulk")
    await small.state.services.rings.close()
    assert bell.rung == [first.json()["id"]]


async def test_a_ring_that_was_lost_leaves_the_job_to_the_next_turn(small: FastAPI, bell: RememberingDoorbell) -> None:
    bell.answers = False
    async with speaking_to(small, await tenant(small, "a", PRODUCER)) as client:
        job_id = (await enqueue(client, "s1")).json()["id"]
    await small.state.services.rings.close()
    async with database_of(small).connect() as conn:
        row = await conn.exec_driver_sql("SELECT dispatched_at FROM jobs WHERE id = %s", (job_id,))
        assert row.scalar_one() is None


async def test_operators_see_and_resume_a_paused_provider_and_others_may_not(small: FastAPI) -> None:
    async with database_of(small).begin() as conn:
        await pauses.pause(conn, "claude-0123456789ab", "billing_error", 2.0)
        await workers.beat_worker(conn, "worker-1", 8, 0, 0.0, False, provider="claude-0123456789ab")
    async with speaking_to(small, None) as stranger:
        part = (await stranger.get("/readyz")).json()["parts"]["providers"]
        assert part == {"ok": False, "detail": "claude-0123456789ab: paused (billing_error)"}
    async with speaking_to(small, await tenant(small, "a", PRODUCER)) as client:
        assert (await client.get("/v1/providers")).status_code == 403
        assert (await client.post("/v1/providers/claude-0123456789ab/resume")).status_code == 403
    async with speaking_to(small, KEY) as operator:
        [listed] = (await operator.get("/v1/providers")).json()["data"]
        assert (listed["name"], listed["state"], listed["trips"]) == ("claude-0123456789ab", "paused", 1)
        opened = await operator.post("/v1/providers/claude-0123456789ab/resume")
        assert (opened.status_code, opened.json()["state"], opened.json()["next_probe_at"]) == (200, "open", None)
        assert (await operator.post("/v1/providers/claude-0123456789ab/resume")).status_code == 200
        assert (await operator.post("/v1/providers/nobody/resume")).status_code == 404
        assert (await operator.post("/v1/providers/No%20Name/resume")).status_code == 422
