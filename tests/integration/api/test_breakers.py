from __future__ import annotations

import httpx2
import pytest
from fastapi import FastAPI

from tests.integration.api import stage

pytestmark = pytest.mark.anyio


async def fail_three_times(app: FastAPI, client: httpx2.AsyncClient, session: str) -> None:
    await client.put(f"/v1/sessions/{session}", json={"model": "claude-haiku-4-5"})
    for _ in range(3):
        job = (await client.post("/v1/compactions", json={"session_id": session, "trigger": "auto"})).json()
        await stage.fail(app, job["id"], "no_summary")


async def test_the_breaker_of_a_session_opens_and_an_operator_closes_it(
    app: FastAPI, client: httpx2.AsyncClient
) -> None:
    await client.put("/v1/sessions/s1", json={"model": "claude-haiku-4-5"})
    closed = (await client.get("/v1/sessions/s1/breaker")).json()
    assert closed == {
        "session_id": "s1",
        "state": "closed",
        "failures": 0,
        "opened_at": None,
        "last_error_code": None,
    }
    await fail_three_times(app, client, "s1")
    opened = (await client.get("/v1/sessions/s1/breaker")).json()
    assert (opened["state"], opened["failures"], opened["last_error_code"]) == ("open", 3, "no_summary")
    assert (await client.get("/v1/sessions/s1")).json()["breaker"] == opened
    reset = await client.post("/v1/sessions/s1/breaker/reset")
    assert reset.json() == closed
    assert (await client.get("/v1/sessions/s1/breaker")).json() == closed


async def test_open_breakers_are_listed(app: FastAPI, client: httpx2.AsyncClient) -> None:
    await client.put("/v1/sessions/fine", json={"model": "claude-haiku-4-5"})
    for session in ("s1", "s2"):
        await fail_three_times(app, client, session)
    first = (await client.get("/v1/breakers", params={"state": "open", "limit": 1})).json()
    rest = (await client.get("/v1/breakers", params={"limit": 1, "cursor": first["next_cursor"]})).json()
    assert [breaker["session_id"] for breaker in first["data"] + rest["data"]] == ["s1", "s2"]
    assert rest["next_cursor"] is None


async def test_only_open_breakers_can_be_listed(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/v1/breakers", params={"state": "closed"})
    assert answer.status_code == 422


async def test_an_unknown_session_has_no_breaker(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/v1/sessions/nobody/breaker")).status_code == 404
    assert (await client.post("/v1/sessions/nobody/breaker/reset")).status_code == 404
