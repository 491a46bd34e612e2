"""A job's timeline as a stream: replayed, followed, resumed, ended."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from api import event_stream
from api.app import create_app
from api.services import Services
from compaction.settings import Settings
from compaction.store import jobs
from compaction.store.jobs import Finish, JobRow
from tests.integration.api import stage
from tests.integration.api.conftest import KEY, RememberingDoorbell, speaking_to
from tests.integration.api.stage import database_of

pytestmark = pytest.mark.anyio

STREAM = {"Accept": "text/event-stream"}
Frame = dict[str, str]


def parsed(text: str) -> list[Frame]:
    """The frames of a stream by the rules of the HTML standard, comments and retry lines left out."""
    frames = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if "data" in fields:
            frames.append(fields)
    return frames


async def enqueued(client: httpx2.AsyncClient, session: str = "s1") -> str:
    await client.put(f"/v1/sessions/{session}", json={"model": "claude-haiku-4-5"})
    job_id: str = (await client.post("/v1/compactions", json={"session_id": session})).json()["id"]
    return job_id


async def streamed(client: httpx2.AsyncClient, job_id: str, **headers: str) -> list[Frame]:
    answer = await client.get(f"/v1/compactions/{job_id}/events", headers=STREAM | headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    return parsed(answer.text)


async def watched(app: FastAPI, *job_ids: str) -> None:
    """Waits until each job has somebody who waits for it."""
    listener = app.state.services.listener
    async with asyncio.timeout(20):
        while not set(job_ids) <= set(listener._watches):  # noqa: ASYNC110 - the listener tells nobody
            await asyncio.sleep(0.01)


async def row_of(app: FastAPI, job_id: str) -> JobRow:
    async with database_of(app).connect() as conn:
        tenant_id = (await conn.exec_driver_sql("SELECT tenant_id FROM jobs WHERE id = %s", (job_id,))).scalar_one()
        row = await jobs.get(conn, tenant_id, job_id)
    assert row is not None
    return row


async def test_the_stream_of_an_ended_job_tells_all_and_closes(app: FastAPI, client: httpx2.AsyncClient) -> None:
    job_id = await enqueued(client)
    await stage.succeed(app, job_id)
    listed = (await client.get(f"/v1/compactions/{job_id}/events")).json()["data"]
    *events, end = await streamed(client, job_id)
    assert [json.loads(frame["data"]) for frame in events] == listed
    assert [(frame["id"], frame["event"]) for frame in events] == [(str(one["id"]), one["type"]) for one in listed]
    assert (end["event"], end["id"]) == ("end", f"{listed[-1]['id']}-end")
    assert json.loads(end["data"]) == (await client.get(f"/v1/compactions/{job_id}")).json()


async def test_a_live_job_is_followed_to_its_end(app: FastAPI, client: httpx2.AsyncClient) -> None:
    job_id = await enqueued(client)
    stream = asyncio.create_task(streamed(client, job_id))
    await watched(app, job_id)
    await stage.succeed(app, job_id)
    frames = await stream
    assert [frame["event"] for frame in frames] == ["job", "tengu_compact", "end"]
    assert json.loads(frames[0]["data"])["status"] == "queued"
    assert "id" not in frames[0]  # a state is no place in the timeline
    assert json.loads(frames[-1]["data"])["status"] == "succeeded"


async def test_a_stream_goes_on_behind_the_last_event_that_was_seen(app: FastAPI, client: httpx2.AsyncClient) -> None:
    job_id = await enqueued(client)
    claim = await stage.claimed(app, job_id)
    await client.post(f"/v1/compactions/{job_id}/cancel")
    await stage.finish(app, claim, Finish(status="cancelled", events=[("tengu_compact_failed", {})]))
    first, second, end = await streamed(client, job_id)
    assert (first["event"], second["event"]) == ("cancel_requested", "tengu_compact_failed")
    assert await streamed(client, job_id, **{"Last-Event-ID": first["id"]}) == [second, end]
    assert await streamed(client, job_id, **{"Last-Event-ID": second["id"]}) == [end]


async def test_after_the_end_a_browser_is_told_to_come_no_more(app: FastAPI, client: httpx2.AsyncClient) -> None:
    """204 is what stops an EventSource."""
    job_id = await enqueued(client)
    await stage.succeed(app, job_id)
    end = (await streamed(client, job_id))[-1]
    answer = await client.get(f"/v1/compactions/{job_id}/events", headers=STREAM | {"Last-Event-ID": end["id"]})
    assert answer.status_code == 204


@pytest.mark.parametrize(
    "last", ["1" * 5_000, "0" * 19 + "1" * 5_000, "9" * 19, "x", "-1", "1.5", "-end", "9" * 30, "1-end-end"]
)
async def test_a_made_up_last_event_id_is_refused(client: httpx2.AsyncClient, last: str) -> None:
    job_id = await enqueued(client)
    answer = await client.get(f"/v1/compactions/{job_id}/events", headers=STREAM | {"Last-Event-ID": last})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, "Last-Event-ID")


async def test_an_unknown_job_has_no_stream(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/compactions/nothing/events", headers=STREAM)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_json_is_what_comes_unless_a_stream_is_asked_for(client: httpx2.AsyncClient) -> None:
    job_id = await enqueued(client)
    for accept in ("*/*", "application/json", "text/html"):
        answer = await client.get(f"/v1/compactions/{job_id}/events", headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/json"


async def test_a_silent_stream_beats_and_shows_progress(app: FastAPI, client: httpx2.AsyncClient) -> None:
    """Progress sends no news: a commit that notifies stands in line. The next beat finds it."""
    job_id = await enqueued(client)
    claim = await stage.claimed(app, job_id)
    stream = event_stream.frames(app.state.services, await row_of(app, job_id), 0, heartbeat_seconds=0.01)
    assert await anext(stream) == b"retry: 1000\n\n"
    assert parsed((await anext(stream)).decode())[0]["event"] == "job"
    assert await anext(stream) == b": still here\n\n"
    async with database_of(app).connect() as conn:
        assert await jobs.set_progress(conn, claim.token, {"step": "summarizing", "percent": 40})
    async with asyncio.timeout(20):
        found: list[Frame] = []
        while not found:
            found = parsed((await anext(stream)).decode())
    assert json.loads(found[0]["data"])["progress"] == {"step": "summarizing", "percent": 40}
    await stream.aclose()  # type: ignore[attr-defined]  # an async generator, typed by what it gives
    assert job_id not in app.state.services.listener._watches


async def test_waiting_streams_and_polls_hold_no_connection(app: FastAPI, client: httpx2.AsyncClient) -> None:
    """Five connections are in the pool; twenty streams and twenty long-polls wait, and others are still served."""
    job_ids = [await enqueued(client, f"s{number}") for number in range(20)]
    polls = [client.get(f"/v1/compactions/{job_id}", headers={"Prefer": "wait=60"}) for job_id in job_ids]
    waiting = [asyncio.create_task(poll) for poll in polls]
    streams = [asyncio.create_task(streamed(client, job_id)) for job_id in job_ids]
    await watched(app, *job_ids)
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%%'"
    async with database_of(app).connect() as conn:
        assert (await conn.exec_driver_sql(query)).scalar_one() == 1
    for job_id in job_ids:
        await stage.skip(app, job_id)
    assert all(answer.json()["done"] for answer in await asyncio.gather(*waiting))
    assert all(frames[-1]["event"] == "end" for frames in await asyncio.gather(*streams))


@pytest.fixture
async def another(settings: Settings) -> AsyncIterator[FastAPI]:
    """An application of this test's own: it is asked to stop."""
    application = create_app(settings, doorbell=RememberingDoorbell())
    async with application.router.lifespan_context(application):
        yield application


async def test_a_server_that_stops_lets_its_streams_go(another: FastAPI) -> None:
    async with speaking_to(another, KEY) as client:
        job_id = await enqueued(client, "stopping")
        stream = asyncio.create_task(streamed(client, job_id))
        await watched(another, job_id)
        held: Services = another.state.services
        await held.stop_waits()
        frames: list[dict[str, Any]] = await stream
    assert [frame["event"] for frame in frames] == ["job"]
