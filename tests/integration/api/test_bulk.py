"""The calls about bulk runs, without a worker: what is taken, refused, repeated and told."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from tests.integration.api.conftest import speaking_to

pytestmark = pytest.mark.anyio
NOBODYS = "01a22e26-5941-7380-aaa5-3156a0f6644b"


async def made(client: httpx2.AsyncClient, **order: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    answer = await client.post("/v1/bulk", json=order)
    assert answer.status_code == 202, answer.text
    run: dict[str, Any] = answer.json()
    assert answer.headers["Location"] == f"/v1/bulk/{run['id']}"
    return run


async def test_a_new_run_waits_to_be_planned(client: httpx2.AsyncClient) -> None:
    run = await made(client, selection={"id_prefix": "a"}, dry_run=True, max_usd=1.5)
    assert (run["state"], run["done"], run["max_usd"], run["way"]) == ("planning", False, 1.5, "live")
    assert run["selection"] == {"id_prefix": "a"}
    assert (await client.get(f"/v1/bulk/{run['id']}")).json() == run


async def test_a_long_list_of_sessions_is_told_by_its_length(client: httpx2.AsyncClient) -> None:
    run = await made(client, selection={"session_ids": ["a", "b"]})
    assert run["selection"] == {"session_ids": 2}


@pytest.mark.parametrize(
    ("order", "field"),
    [
        ({"selection": {"colour": "red"}}, "selection.colour"),
        ({"selection": {"session_ids": []}}, "selection.session_ids"),
        ({"selection": {"session_ids": ["no spaces"]}}, "selection.session_ids[0]"),
        ({"selection": {"idle_days": -1}}, "selection.idle_days"),
        ({"way": "by post"}, "way"),
        ({"sample": 0}, "sample"),
        ({"max_usd": 0}, "max_usd"),
        ({"model": "a\0b"}, "model"),
    ],
)
async def test_a_wrong_order_is_refused_by_the_name_of_its_field(
    client: httpx2.AsyncClient, order: dict[str, Any], field: str
) -> None:
    answer = await client.post("/v1/bulk", json=order)
    assert answer.status_code == 422
    assert field in str(answer.json()["errors"])


async def test_the_same_request_under_its_key_makes_one_run(client: httpx2.AsyncClient) -> None:
    order: dict[str, Any] = {"selection": {}}
    key = {"Idempotency-Key": "once"}
    first = await client.post("/v1/bulk", json=order, headers=key)
    again = await client.post("/v1/bulk", json=order, headers=key)
    assert again.json()["id"] == first.json()["id"]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert len((await client.get("/v1/bulk")).json()["data"]) == 1
    other = await client.post("/v1/bulk", json={"selection": {}, "force": True}, headers=key)
    assert other.json()["code"] == "idempotency_mismatch"


async def test_runs_are_listed_newest_first_and_page_by_page(client: httpx2.AsyncClient) -> None:
    ids = [(await made(client))["id"] for _ in range(3)]
    first = (await client.get("/v1/bulk", params={"limit": 2})).json()
    rest = (await client.get("/v1/bulk", params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [run["id"] for run in (*first["data"], *rest["data"])] == ids[::-1]
    assert rest["has_more"] is False


async def test_a_plan_is_paused_and_goes_on_and_ends_only_once(client: httpx2.AsyncClient) -> None:
    run = await made(client)
    address = f"/v1/bulk/{run['id']}"
    assert (await client.post(f"{address}/pause")).json()["state"] == "paused"
    assert (await client.post(f"{address}/pause")).json()["state"] == "paused"
    assert (await client.post(f"{address}/resume")).json()["state"] == "planning"
    cancelled = await client.post(f"{address}/cancel")
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelling")
    for word in ("pause", "resume"):
        refused = await client.post(f"{address}/{word}")
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize("what", ["", "/results", "/report"])
async def test_nobodys_run_is_not_found(client: httpx2.AsyncClient, what: str) -> None:
    for name in (NOBODYS, "no-id"):
        answer = await client.get(f"/v1/bulk/{name}{what}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_the_report_is_json_or_a_page_that_loads_nothing(client: httpx2.AsyncClient) -> None:
    run = await made(client)
    assert (await client.get(f"/v1/bulk/{run['id']}/report")).json()["succeeded"] == 0
    page = await client.get(f"/v1/bulk/{run['id']}/report", headers={"Accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]


async def test_a_reader_may_look_and_not_order(app: FastAPI, admin: httpx2.AsyncClient) -> None:
    wanted = {"tenant": "bulk-readers", "scopes": ["read"]}
    key = (await admin.post("/v1/api-keys", json=wanted)).json()["key"]
    async with speaking_to(app, key) as reader:
        assert (await reader.get("/v1/bulk")).status_code == 200
        assert (await reader.post("/v1/bulk", json={})).status_code == 403
