"""Versions of a session: each compaction leaves one, the current one can be chosen, and there is a way back."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from compaction.core.prompts import PROMPT_VERSION
from tests.integration.api import stage

pytestmark = pytest.mark.anyio

TURNS = [
    {"uuid": f"m{place}", "role": ("user", "assistant")[place % 2], "content": f"turn {place}"} for place in range(4)
]
NEWER = {"uuid": "new", "role": "user", "content": "more"}


async def compacted(app: FastAPI, client: httpx2.AsyncClient) -> str:
    job_id: str = (await client.post("/v1/compactions", json={"session_id": "s"})).json()["id"]
    await stage.succeed(app, job_id)
    return job_id


async def live(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get("/v1/sessions/s/messages", params={"view": "live"})).json()["data"]
    return found


async def stored(client: httpx2.AsyncClient) -> None:
    await client.put("/v1/sessions/s", json={"model": "claude-haiku-4-5"})
    await client.post("/v1/sessions/s/messages", json={"messages": TURNS})


async def test_the_newest_result_is_current_and_every_one_is_kept(app: FastAPI, client: httpx2.AsyncClient) -> None:
    await stored(client)
    first, second = await compacted(app, client), await compacted(app, client)
    told = (await client.get("/v1/sessions/s/versions")).json()
    assert told["current"] == second
    assert [version["job_id"] for version in told["data"]] == [second, first]
    assert [version["is_current"] for version in told["data"]] == [True, False]
    assert told["data"][0]["prompt_version"] == PROMPT_VERSION


async def test_there_is_a_way_back_to_an_earlier_result_and_to_none(app: FastAPI, client: httpx2.AsyncClient) -> None:
    await stored(client)
    first, second = await compacted(app, client), await compacted(app, client)
    views = {}
    for choice in (first, second, None):
        answer = await client.put("/v1/sessions/s/versions", json={"job_id": choice})
        assert (answer.status_code, answer.json()["current"]) == (200, choice)
        views[choice] = await live(client)
    assert [message["content"] for message in views[None]] == [turn["content"] for turn in TURNS]
    assert views[first][0]["metadata"]["job_id"] == first
    assert views[second][0]["metadata"]["job_id"] == second


async def test_what_came_after_a_result_follows_it_whichever_is_chosen(
    app: FastAPI, client: httpx2.AsyncClient
) -> None:
    await stored(client)
    first = await compacted(app, client)
    await client.post("/v1/sessions/s/messages", json={"messages": [NEWER]})
    await compacted(app, client)
    await client.put("/v1/sessions/s/versions", json={"job_id": first})
    assert (await live(client))[-1]["content"] == "more"


async def test_a_result_of_another_session_is_not_found(app: FastAPI, client: httpx2.AsyncClient) -> None:
    await stored(client)
    job_id = await compacted(app, client)
    await client.put("/v1/sessions/other", json={"model": "claude-haiku-4-5"})
    for given in (job_id, "no-job"):
        answer = await client.put("/v1/sessions/other/versions", json={"job_id": given})
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_nothing_is_chosen_under_a_job_that_works(app: FastAPI, client: httpx2.AsyncClient) -> None:
    await stored(client)
    await compacted(app, client)
    job_id = (await client.post("/v1/compactions", json={"session_id": "s"})).json()["id"]
    await stage.claimed(app, job_id)
    answer = await client.put("/v1/sessions/s/versions", json={"job_id": None})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


async def test_a_newer_boundary_of_the_producer_is_not_undone(app: FastAPI, client: httpx2.AsyncClient) -> None:
    await stored(client)
    first = await compacted(app, client)
    boundary = {"uuid": "b", "role": "system", "content": "", "metadata": {"kind": "compact_boundary"}}
    await client.post("/v1/sessions/s/messages", json={"messages": [boundary, {"role": "user", "content": "anew"}]})
    answer = await client.put("/v1/sessions/s/versions", json={"job_id": first})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
