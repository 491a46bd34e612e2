from __future__ import annotations

from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from compaction.store import hooks
from tests.integration.api.conftest import speaking_to
from tests.integration.api.stage import database_of

pytestmark = pytest.mark.anyio

SECRET = "whsec_" + "A" * 32
NOBODYS = "00000000-0000-7000-8000-000000000000"


def wanted(**changes: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A good request, changed."""
    return {"event": "pre_compact", "url": "https://hooks.example.com/x?token=t", "secret": SECRET} | changes


async def key_with(admin: httpx2.AsyncClient, tenant: str, *scopes: str) -> str:
    """A new key."""
    made = await admin.post("/v1/api-keys", json={"tenant": tenant, "scopes": list(scopes)})
    return str(made.json()["key"])


async def test_a_hook_is_made_read_listed_and_removed_and_its_secret_is_never_told(client: httpx2.AsyncClient) -> None:
    made = await client.post("/v1/hooks", json=wanted(timeout_s=2.5))
    assert made.status_code == 201, made.text
    hook = made.json()
    assert {name: hook[name] for name in hook if name not in {"id", "created_at"}} == {
        "event": "pre_compact",
        "url": "https://hooks.example.com/x?token=t",
        "timeout_s": 2.5,
        "enabled": True,
    }
    assert made.headers["location"] == f"/v1/hooks/{hook['id']}"
    read = await client.get(made.headers["location"])
    listed = await client.get("/v1/hooks")
    assert read.json() == hook
    assert listed.json() == {"data": [hook], "next_cursor": None, "has_more": False}
    assert not any("whsec" in answer.text for answer in (made, read, listed))
    assert (await client.delete(made.headers["location"])).status_code == 204
    assert (await client.delete(made.headers["location"])).status_code == 404
    assert (await client.get(made.headers["location"])).status_code == 404


async def test_a_hook_has_five_seconds_unless_it_says_otherwise(client: httpx2.AsyncClient) -> None:
    made = await client.post("/v1/hooks", json=wanted(event="session_start"))
    assert (made.json()["timeout_s"], made.json()["event"]) == (5.0, "session_start")


async def test_the_worker_finds_the_hook_with_its_secret(app: FastAPI, admin: httpx2.AsyncClient) -> None:
    async with speaking_to(app, await key_with(admin, "hooked", "ops")) as client:
        made = (await client.post("/v1/hooks", json=wanted())).json()
    async with database_of(app).connect() as conn:
        tenant_id = (await conn.exec_driver_sql("SELECT id FROM tenants WHERE name = 'hooked'")).scalar_one()
        (endpoint,) = await hooks.endpoints(conn, tenant_id)
    assert (endpoint.id, endpoint.secret, endpoint.timeout_seconds) == (made["id"], SECRET, 5.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("event", "stop"),
        ("event", None),
        ("url", ""),
        ("url", "hooks.example.com"),
        ("url", "ftp://hooks.example.com/"),
        ("url", "https://user:hunter2@hooks.example.com/"),
        ("url", "https://hooks.example.com:6379/"),
        ("url", "http://127.0.0.1/"),
        ("url", "http://[::1]/"),
        ("url", "http://169.254.169.254/latest/meta-data/"),
        ("url", "https://hooks.example.com/" + "x" * 2_048),
        ("url", "https://hooks.example.com/\0"),
        ("secret", ""),
        ("secret", "hunter2"),
        ("secret", "whsec_hunter2"),
        ("secret", "whsec_" + "A" * 300),
        ("timeout_s", 0),
        ("timeout_s", -1),
        ("timeout_s", 30.1),
        ("timeout_s", "5"),
        ("timeout_s", None),
        ("enabled", True),
    ],
)
async def test_a_wrong_hook_is_refused_by_its_field_and_not_quoted(
    client: httpx2.AsyncClient, field: str, value: object
) -> None:
    answer = await client.post("/v1/hooks", json=wanted(**{field: value}))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), answer.text
    assert answer.json()["errors"][0]["path"] == field
    assert "hunter2" not in answer.text
    assert (await client.get("/v1/hooks")).json()["data"] == []


@pytest.mark.parametrize("number", ["NaN", "Infinity"])
async def test_a_timeout_must_be_a_number(client: httpx2.AsyncClient, number: str) -> None:
    body = f'{{"event":"pre_compact","url":"https://a.example.com/","secret":"{SECRET}","timeout_s":{number}}}'
    answer = await client.post("/v1/hooks", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in {400, 422}


async def test_the_same_request_again_under_one_idempotency_key_makes_one_hook(client: httpx2.AsyncClient) -> None:
    headers = {"Idempotency-Key": "one"}
    first = await client.post("/v1/hooks", json=wanted(), headers=headers)
    again = await client.post("/v1/hooks", json=wanted(), headers=headers)
    other = await client.post("/v1/hooks", json=wanted(event="session_start"), headers=headers)
    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    assert again.headers["idempotent-replayed"] == "true"
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    assert len((await client.get("/v1/hooks")).json()["data"]) == 1


async def test_a_tenant_has_at_most_twenty_hooks(client: httpx2.AsyncClient) -> None:
    made = [await client.post("/v1/hooks", json=wanted()) for _ in range(21)]
    assert [answer.status_code for answer in made] == [201] * 20 + [409]
    page = (await client.get("/v1/hooks", params={"limit": 15})).json()
    rest = (await client.get("/v1/hooks", params={"limit": 15, "cursor": page["next_cursor"]})).json()
    ids = [hook["id"] for hook in page["data"] + rest["data"]]
    assert ids == [answer.json()["id"] for answer in made[:20]]
    assert not rest["has_more"]


@pytest.mark.parametrize(("scope", "allowed"), [("admin", True), ("ops", True), ("read", False), ("jobs:write", False)])
async def test_an_admin_or_an_operator_may_keep_hooks_and_nobody_else(
    app: FastAPI, admin: httpx2.AsyncClient, scope: str, *, allowed: bool
) -> None:
    async with speaking_to(app, await key_with(admin, f"scoped-{scope}", scope)) as client:
        answers = [
            await client.post("/v1/hooks", json=wanted()),
            await client.get("/v1/hooks"),
            await client.get(f"/v1/hooks/{NOBODYS}"),
            await client.delete(f"/v1/hooks/{NOBODYS}"),
        ]
    assert [answer.status_code for answer in answers] == ([201, 200, 404, 404] if allowed else [403] * 4)
    if not allowed:
        assert "admin or ops" in answers[0].json()["detail"]


async def test_another_tenants_hook_is_not_there(client: httpx2.AsyncClient, admin: httpx2.AsyncClient) -> None:
    made = (await client.post("/v1/hooks", json=wanted())).json()
    assert (await admin.get(f"/v1/hooks/{made['id']}")).status_code == 404
    assert (await admin.delete(f"/v1/hooks/{made['id']}")).status_code == 404
    assert made["id"] not in {hook["id"] for hook in (await admin.get("/v1/hooks")).json()["data"]}
    assert (await client.get(f"/v1/hooks/{made['id']}")).status_code == 200


@pytest.mark.parametrize("hook_id", ["x", NOBODYS, "..", "%00"])
async def test_an_unknown_id_is_not_found(client: httpx2.AsyncClient, hook_id: str) -> None:
    assert (await client.get(f"/v1/hooks/{hook_id}")).status_code in {404, 422}


async def test_runtime_state_is_stored_like_other_state(client: httpx2.AsyncClient) -> None:
    await client.put("/v1/sessions/s1", json={"model": "claude-haiku-4-5"})
    address = "/v1/sessions/s1/state/runtime/micro_compaction"
    assert (await client.put(address, json={"cleared": ["t1"]})).status_code == 204
    assert (await client.get(address)).json() == {"cleared": ["t1"]}
