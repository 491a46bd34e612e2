"""Waiting for a job's end, for as long as somebody is there to hear of it."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from fastapi import FastAPI

from api.looks import Seen
from api.services import Services
from api.waiting import job_at_end
from tests.integration.api import stage
from tests.integration.api.stage import database_of

pytestmark = pytest.mark.anyio

LONG_SECONDS = 600.0  # longer than a test may take


class Caller:
    """Hangs up when it is asked for the third time."""

    def __init__(self) -> None:
        self.asked = 0
        self.reads = 0

    async def is_gone(self) -> bool:
        self.asked += 1
        return self.asked >= 3


@pytest.fixture
async def job_id(client: httpx2.AsyncClient) -> str:
    await client.put("/v1/sessions/s1", json={"model": "claude-haiku-4-5"})
    made: str = (await client.post("/v1/compactions", json={"session_id": "s1"})).json()["id"]
    return made


async def waited(app: FastAPI, job_id: str, caller: Caller) -> Seen:
    held: Services = app.state.services
    async with database_of(app).connect() as conn:
        tenant_id = (await conn.exec_driver_sql("SELECT tenant_id FROM jobs WHERE id = %s", (job_id,))).scalar_one()

    async def read() -> Seen:
        caller.reads += 1
        seen = await held.looks.job(tenant_id, job_id)
        assert seen is not None
        return seen

    return await job_at_end(held, job_id, read, LONG_SECONDS, caller.is_gone, look_up_seconds=0.01)


async def test_nobody_waits_for_a_caller_who_has_hung_up(app: FastAPI, job_id: str) -> None:
    caller = Caller()
    seen = await waited(app, job_id, caller)
    assert (seen.row.status, caller.asked) == ("queued", 3)
    assert caller.reads <= 2  # looking up costs no query; the listener's first connection may bring one more
    assert job_id not in app.state.services.listener._watches


async def test_a_caller_who_is_there_hears_of_the_end(app: FastAPI, job_id: str) -> None:
    caller = Caller()
    caller.asked = -1_000_000
    waiting = asyncio.create_task(waited(app, job_id, caller))
    while caller.asked == -1_000_000:  # noqa: ASYNC110 - the caller tells nobody
        await asyncio.sleep(0.01)
    await stage.skip(app, job_id)
    assert (await waiting).row.done
