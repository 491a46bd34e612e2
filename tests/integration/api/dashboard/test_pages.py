"""What the pages say: the figures of the overview, workers and providers, a session's use of results, empty places."""

from __future__ import annotations

import itertools

import pytest
from fastapi import FastAPI

from compaction.store import pauses, workers
from tests.integration.api import stage
from tests.integration.api.conftest import KEY, speaking_to
from tests.integration.api.dashboard.visitor import key_for, visiting, words
from tests.integration.api.stage import database_of

pytestmark = pytest.mark.anyio
_numbers = itertools.count(1)


async def a_tenant(app: FastAPI) -> str:
    return await key_for(app, f"pages-{next(_numbers)}")


async def put(app: FastAPI, key: str, session: str, text: str = "hello") -> None:
    async with speaking_to(app, key) as client:
        await client.put(f"/v1/sessions/{session}", json={"model": "claude-haiku-4-5"})
        said = {"messages": [{"role": "user", "content": text}]}
        await client.post(f"/v1/sessions/{session}/messages", json=said)


async def enqueue(app: FastAPI, key: str, session: str, trigger: str = "manual") -> str:
    async with speaking_to(app, key) as client:
        answer = await client.post("/v1/compactions", json={"session_id": session, "trigger": trigger})
        job_id: str = answer.json()["id"]
        return job_id


async def test_empty_pages_say_what_to_do(app: FastAPI) -> None:
    async with visiting(app, await a_tenant(app)) as visitor:
        assert "Agents enqueue with POST /v1/compactions" in await visitor.text("")
        assert "enjoy the quiet" in await visitor.text("/failures")
        assert "No job matches. Clear a field" in await visitor.text("/jobs?status=failed")
        assert "PUT /v1/sessions/{id} creates one" in await visitor.text("/sessions")
        assert "No session of exactly this id" in await visitor.text("/sessions?name=nobody")
        assert "every session may compact by itself" in await visitor.text("/breakers")
        assert "Nothing was done here yet" not in await visitor.text("/audit")  # the sign-in was


async def test_the_overview_counts_what_ended_and_what_waits(app: FastAPI) -> None:
    """The played result goes from 1,000 tokens to 100: of two jobs 1,800 are saved, one of three failed."""
    key = await a_tenant(app)
    for name in ("one", "two", "three", "four"):
        await put(app, key, name)
    for name in ("one", "two"):
        await stage.succeed(app, await enqueue(app, key, name))
    await stage.fail(app, await enqueue(app, key, "three"))
    await enqueue(app, key, "four")
    async with visiting(app, key) as visitor:
        page = await visitor.text("")
    assert "Queued 1 oldest waits" in page
    assert "Ended 3" in page
    assert "Success 67 % 1 failed, 0 cancelled" in page
    assert "Tokens saved 1.8k by 2 compactions" in page
    assert "Spent $0.00 2 without a known price" in page


async def test_a_session_tells_how_its_results_are_used(app: FastAPI) -> None:
    key = await a_tenant(app)
    await put(app, key, "used")
    job_id = await enqueue(app, key, "used")
    await stage.succeed(app, job_id)
    async with visiting(app, key) as visitor:
        assert "not confirmed" in await visitor.text("/session?name=used")
        assert "not yet: the producer has not confirmed" in await visitor.text(f"/jobs/{job_id}")
        async with speaking_to(app, key) as client:
            result = (await client.get(f"/v1/compactions/{job_id}/result")).json()
            prefix = {"prefix_hash": result["prefix_hash"]}
            assert (await client.post(f"/v1/compactions/{job_id}/apply", json=prefix)).status_code == 200
        assert "up to #1" in await visitor.text("/session?name=used")
        page = await visitor.text(f"/jobs/{job_id}")
    assert "with messages up to #1" in page
    assert "1,000 before → 100 after: 90 % less" in page
    assert "Summary: so far so good." in page


async def test_a_long_history_is_read_page_by_page(app: FastAPI) -> None:
    key = await a_tenant(app)
    async with speaking_to(app, key) as client:
        await client.put("/v1/sessions/long", json={"model": "claude-haiku-4-5"})
        said = [{"role": ("user", "assistant")[n % 2], "content": f"line-{n:03}"} for n in range(70)]
        await client.post("/v1/sessions/long/messages", json={"messages": said})
    async with visiting(app, key) as visitor:
        for view in ("live", "full"):
            found: list[str] = []
            for after in (0, 30, 60):
                page = await visitor.text(f"/session?name=long&view={view}&after={after}")
                found += [line for line in (f"line-{n:03}" for n in range(70)) if line in page]
                assert ("Next" in page.split("Messages")[-1]) is (after < 60)
            assert found == [f"line-{n:03}" for n in range(70)], view


async def test_workers_leases_and_paused_providers_are_seen_and_resumed(app: FastAPI) -> None:
    database = stage.database_of(app)
    key = await a_tenant(app)
    await put(app, key, "held")
    claim = await stage.claimed(app, await enqueue(app, key, "held"))
    async with database.begin() as conn:
        await workers.beat_worker(conn, "host:7:abc", 20, 3, 6.5, False, "claude-0123")
        await pauses.pause(conn, "claude-0123", "billing_error", 60.0)
    async with visiting(app, KEY) as operator:
        page = await operator.text("/workers")
        assert "host:7:abc alive" in page
        assert "3 / 20" in page
        assert "6,500 ms late" in page
        assert "claude-0123 paused billing_error" in page
        assert str(claim.token) in page
        assert "Nothing starts: every living worker's provider is paused ( billing_error )" in await operator.text("")
        answer = await operator.post("/providers/claude-0123/resume")
        assert answer.headers["location"] == "/dashboard/workers?note=resumed"
        assert "claude-0123 open" in await operator.text("/workers")
        assert "Nothing starts" not in await operator.text("")
        assert "provider.resume claude-0123 1" in await operator.text("/audit")
    async with database.begin() as conn:
        await workers.forget(conn, "host:7:abc")


async def test_tenants_are_told_of_a_standstill_without_the_providers_name(app: FastAPI) -> None:
    database = stage.database_of(app)
    async with database.begin() as conn:
        await workers.beat_worker(conn, "host:8:abc", 20, 0, 0.0, False, "claude-4567")
        await pauses.pause(conn, "claude-4567", "auth_error", 60.0)
    async with visiting(app, await a_tenant(app)) as visitor:
        html = (await visitor.get("")).text
    assert "Nothing starts" in words(html)
    assert "claude-4567" not in html
    assert "host:8" not in html
    async with database.begin() as conn:
        await workers.forget(conn, "host:8:abc")


@pytest.mark.parametrize(
    "address",
    [
        *("/jobs?status=lost", "/jobs?after=yesterday", "/jobs?code=DROP TABLE", "/jobs?cursor=made-up"),
        *("/failures?window=1y", "/session?name=x&view=none", "/audit?cursor=x", "/jobs/all?action=explode"),
        *("/jobs?session=%00", "/sessions?cursor=%F0", "/session", "/breakers?cursor=!"),
    ],
)
async def test_a_wrong_address_is_explained_on_a_page(app: FastAPI, address: str) -> None:
    async with visiting(app) as visitor:
        answer = await visitor.get(address)
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("text/html")
    assert "Back to the overview" in answer.text


@pytest.mark.parametrize(
    "address", ["/nowhere", "/jobs/none", "/jobs/01a22e26-5941-7380-aaa5-3156a0f6644b", "/help/none"]
)
async def test_what_is_not_there_is_told_on_a_page(app: FastAPI, address: str) -> None:
    async with visiting(app) as visitor:
        answer = await visitor.get(address)
    assert answer.status_code == 404
    assert "Back to the overview" in answer.text


async def test_the_sessions_of_inline_jobs_are_nobodys_to_open(app: FastAPI) -> None:
    key = await a_tenant(app)
    async with speaking_to(app, key) as client:
        told = [{"role": "user", "content": "MARK-INLINE"}, {"role": "assistant", "content": "Yes."}]
        answer = await client.post("/v1/compactions", json={"model": "claude-haiku-4-5", "messages": told})
        assert answer.status_code == 202
    async with database_of(app).connect() as conn:
        newest = "SELECT name FROM sessions WHERE is_ephemeral ORDER BY id DESC LIMIT 1"
        name = (await conn.exec_driver_sql(newest)).scalar_one()
    async with visiting(app, key) as visitor:
        assert name not in await visitor.text("/sessions")
        assert "No session of exactly this id" in await visitor.text(f"/sessions?name={name}")
        assert "MARK-INLINE" not in (await visitor.get(f"/session?name={name}")).text
