from __future__ import annotations

import httpx2
import pytest
from fastapi import FastAPI

from tests.integration.api.conftest import KEY, speaking_to

pytestmark = pytest.mark.anyio

CALLS = {  # one call per scope that is allowed with this scope alone
    "sessions:write": ("PUT", "/v1/sessions/s1", {"model": "claude-haiku-4-5"}),
    "jobs:write": ("POST", "/v1/compactions", {"session_id": "nobody"}),
    "read": ("GET", "/v1/compactions", None),
    "ops": ("POST", "/v1/sessions/nobody/breaker/reset", None),
    "admin": ("POST", "/v1/api-keys", {"tenant": "scoped", "scopes": ["admin"]}),
}


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic abc",
        "Bearer wrong",
        f"Bearer {KEY}x",
        f"Bearer {KEY[:-1]}b",
        "Bearer ck_bootstr2_" + "a" * 43,
        "Bearer " + "x" * 10_000,
        "Bearer \u00e9",
    ],
)
async def test_a_call_without_a_valid_key_is_unauthorized(stranger: httpx2.AsyncClient, header: str | None) -> None:
    headers = {} if header is None else {b"Authorization": header.encode("latin-1")}
    answer = await stranger.get("/v1/compactions", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"


async def test_the_key_is_asked_for_before_anything_else_is_said(stranger: httpx2.AsyncClient) -> None:
    answer = await stranger.put("/v1/sessions/not%20a%20name", content=b"{")
    assert answer.status_code == 401


async def test_a_key_may_do_what_its_scopes_say_and_no_more(app: FastAPI, admin: httpx2.AsyncClient) -> None:
    for scope in CALLS:
        key = (await admin.post("/v1/api-keys", json={"tenant": "scoped", "scopes": [scope]})).json()["key"]
        async with speaking_to(app, key) as client:
            for needed, (method, path, body) in CALLS.items():
                answer = await client.request(method, path, json=body)
                if needed == scope:
                    assert answer.status_code != 403, (scope, needed)
                else:
                    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), (scope, needed)


async def test_a_new_key_is_shown_once_and_works(app: FastAPI, admin: httpx2.AsyncClient) -> None:
    answer = await admin.post("/v1/api-keys", json={"tenant": "new", "scopes": ["read"]})
    made = answer.json()
    assert answer.status_code == 201
    assert set(made) == {"key", "public_id", "tenant", "scopes", "expires_at"}
    assert made["key"].startswith(f"ck_{made['public_id']}_")
    async with speaking_to(app, made["key"]) as client:
        assert (await client.get("/v1/compactions")).status_code == 200


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tenant", ""),
        ("tenant", "nul\0"),
        ("tenant", "x" * 201),
        ("scopes", []),
        ("scopes", ["everything"]),
        ("scopes", "read"),
        ("expires_at", "2020-01-01T00:00:00Z"),
        ("expires_at", "0001-01-01T00:00:00+14:00"),
        ("expires_at", "2999-01-01T00:00:00"),
        ("key", KEY),
    ],
)
async def test_a_wrong_key_request_is_refused(admin: httpx2.AsyncClient, field: str, value: object) -> None:
    answer = await admin.post("/v1/api-keys", json={"tenant": "t", "scopes": ["read"], field: value})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["path"].startswith(field)


async def test_tenants_do_not_see_each_other(
    app: FastAPI, admin: httpx2.AsyncClient, client: httpx2.AsyncClient
) -> None:
    await client.put("/v1/sessions/mine", json={"model": "claude-haiku-4-5"})
    job = (await client.post("/v1/compactions", json={"session_id": "mine"})).json()
    for path in (
        "/v1/sessions/mine",
        "/v1/sessions/mine/messages?view=full",
        "/v1/sessions/mine/breaker",
        f"/v1/compactions/{job['id']}",
        f"/v1/compactions/{job['id']}/result",
        f"/v1/compactions/{job['id']}/events",
    ):
        assert (await admin.get(path)).status_code == 404, path
    assert (await admin.post(f"/v1/compactions/{job['id']}/cancel")).status_code == 404
    assert (await admin.post("/v1/compactions", json={"session_id": "mine"})).status_code == 404
    listed = (await admin.get("/v1/compactions")).json()["data"]
    assert job["id"] not in {other["id"] for other in listed}
    assert (await client.get(f"/v1/compactions/{job['id']}")).json()["status"] == "queued"
