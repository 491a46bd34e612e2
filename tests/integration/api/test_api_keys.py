"""Keys: who may make, see and revoke whose."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from compaction.store.tenants import OPERATOR_TENANT, SCOPES
from tests.integration.api.conftest import KEY, speaking_to
from tests.integration.api.stage import database_of

pytestmark = pytest.mark.anyio
_numbers = itertools.count(1)


@asynccontextmanager
async def holder_of(
    app: FastAPI, admin: httpx2.AsyncClient, tenant: str, *scopes: str
) -> AsyncIterator[httpx2.AsyncClient]:
    """Somebody with a new key that the operator made."""
    made = await admin.post("/v1/api-keys", json={"tenant": tenant, "scopes": list(scopes)})
    async with speaking_to(app, made.json()["key"]) as client:
        yield client


@pytest.fixture
def tenant() -> str:
    """The name of this test's own tenant."""
    return f"keys-{next(_numbers)}"


@pytest.fixture
async def client(app: FastAPI, admin: httpx2.AsyncClient, tenant: str) -> AsyncIterator[httpx2.AsyncClient]:
    """The tenant's admin, with all scopes."""
    async with holder_of(app, admin, tenant, *SCOPES) as holder:
        yield holder


def wanted(tenant: str, *scopes: str) -> dict[str, Any]:
    """A request for a key that lasts."""
    return {"tenant": tenant, "scopes": list(scopes), "expires_at": "2999-01-01T00:00:00Z"}


async def test_the_operators_admin_makes_keys_of_any_scope_for_any_tenant(
    app: FastAPI, admin: httpx2.AsyncClient
) -> None:
    async with holder_of(app, admin, OPERATOR_TENANT, "admin") as colleague:
        for tenant in ("acme", "brand-new", OPERATOR_TENANT):
            made = await colleague.post("/v1/api-keys", json={"tenant": tenant, "scopes": list(SCOPES)})
            assert (made.status_code, made.json()["tenant"]) == (201, tenant)


@pytest.mark.parametrize("other", ["globex", OPERATOR_TENANT, "not-there-yet", "ACME", "acme "])
async def test_a_tenants_admin_makes_no_keys_for_another_tenant(
    app: FastAPI, admin: httpx2.AsyncClient, other: str
) -> None:
    async with holder_of(app, admin, "globex", "read"), holder_of(app, admin, "acme", *SCOPES) as acme:
        answer = await acme.post("/v1/api-keys", json={"tenant": other, "scopes": ["read"]})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert "own tenant" in answer.json()["detail"]


async def test_a_tenants_admin_gives_at_most_the_scopes_of_its_own_key(app: FastAPI, admin: httpx2.AsyncClient) -> None:
    async with holder_of(app, admin, "acme", "admin", "read") as acme:
        made = await acme.post("/v1/api-keys", json={"tenant": "acme", "scopes": ["read", "admin"]})
        beyond = await acme.post("/v1/api-keys", json={"tenant": "acme", "scopes": ["read", "ops", "jobs:write"]})
    assert made.status_code == 201
    assert (beyond.status_code, beyond.json()["code"]) == (403, "forbidden")
    assert "jobs:write, ops" in beyond.json()["detail"]


async def test_providers_are_shared_by_all_tenants_and_so_the_operators_alone(
    app: FastAPI, admin: httpx2.AsyncClient
) -> None:
    async with holder_of(app, admin, "acme", *SCOPES) as acme:
        for method, path in (("GET", "/v1/providers"), ("POST", "/v1/providers/claude-1/resume")):
            answer = await acme.request(method, path)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), path
            assert "operator" in answer.json()["detail"]
    async with holder_of(app, admin, OPERATOR_TENANT, "ops") as operator:
        assert (await operator.get("/v1/providers")).status_code == 200
        assert (await operator.post("/v1/providers/claude-1/resume")).status_code == 404


async def test_an_admin_sees_the_keys_of_its_tenant_and_nothing_secret(
    app: FastAPI, admin: httpx2.AsyncClient, client: httpx2.AsyncClient, tenant: str
) -> None:
    (own,) = (await client.get("/v1/api-keys")).json()["data"]
    made = (await client.post("/v1/api-keys", json=wanted(tenant, "read"))).json()
    listed = await client.get("/v1/api-keys")
    assert [key["public_id"] for key in listed.json()["data"]] == [own["public_id"], made["public_id"]]
    assert listed.json()["data"][1] == {
        "public_id": made["public_id"],
        "scopes": ["read"],
        "created_at": listed.json()["data"][1]["created_at"],
        "expires_at": "2999-01-01T00:00:00Z",
        "last_used_at": None,
        "revoked_at": None,
    }
    assert made["key"].removeprefix(f"ck_{made['public_id']}_") not in listed.text
    assert own["last_used_at"] is not None
    async with speaking_to(app, made["key"]) as reader:
        assert (await reader.get("/v1/api-keys")).status_code == 403
    elsewhere = (await admin.get("/v1/api-keys", params={"limit": 200})).json()["data"]
    assert made["public_id"] not in {key["public_id"] for key in elsewhere}


async def test_keys_are_listed_in_pages(client: httpx2.AsyncClient, tenant: str) -> None:
    body = wanted(tenant, "read")
    for _ in range(3):
        await client.post("/v1/api-keys", json=body)
    everything = [key["public_id"] for key in (await client.get("/v1/api-keys")).json()["data"]]
    first = (await client.get("/v1/api-keys", params={"limit": 3})).json()
    rest = (await client.get("/v1/api-keys", params={"limit": 3, "cursor": first["next_cursor"]})).json()
    assert (first["has_more"], rest["has_more"], rest["next_cursor"]) == (True, False, None)
    assert [key["public_id"] for key in first["data"] + rest["data"]] == everything
    assert (await client.get("/v1/api-keys", params={"cursor": "made-up"})).status_code == 422


async def test_a_revoked_key_opens_nothing_and_stays_in_the_list(
    app: FastAPI, client: httpx2.AsyncClient, tenant: str
) -> None:
    made = (await client.post("/v1/api-keys", json=wanted(tenant, "read"))).json()
    path = f"/v1/api-keys/{made['public_id']}"
    async with speaking_to(app, made["key"]) as reader:
        assert (await reader.get("/v1/compactions")).status_code == 200
        assert (await client.delete(path)).status_code == 204
        assert (await reader.get("/v1/compactions")).status_code == 401
    revoked_at = (await client.get("/v1/api-keys")).json()["data"][1]["revoked_at"]
    assert revoked_at is not None
    assert (await client.delete(path)).status_code == 204
    assert (await client.get("/v1/api-keys")).json()["data"][1]["revoked_at"] == revoked_at


async def test_another_tenants_key_is_not_there_to_be_revoked(
    app: FastAPI, admin: httpx2.AsyncClient, client: httpx2.AsyncClient
) -> None:
    (own,) = (await client.get("/v1/api-keys")).json()["data"]
    async with holder_of(app, admin, "globex", "admin") as globex:
        for public_id in (own["public_id"], "nobodys0", "x", "%00", "%C3%A9", KEY):
            answer = await globex.delete(f"/v1/api-keys/{public_id}")
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), public_id
    assert (await client.get("/v1/api-keys")).json()["data"][0]["revoked_at"] is None


async def test_a_key_may_revoke_itself_even_as_the_last_admin(client: httpx2.AsyncClient) -> None:
    (own,) = (await client.get("/v1/api-keys")).json()["data"]
    assert (await client.delete(f"/v1/api-keys/{own['public_id']}")).status_code == 204
    assert (await client.get("/v1/api-keys")).status_code == 401


async def test_a_key_request_sent_again_makes_no_second_key_and_its_secret_is_kept_nowhere(
    app: FastAPI, client: httpx2.AsyncClient, tenant: str
) -> None:
    headers = {"Idempotency-Key": "the-readers-key"}
    first = await client.post("/v1/api-keys", json=wanted(tenant, "read"), headers=headers)
    again = await client.post("/v1/api-keys", json=wanted(tenant, "read"), headers=headers)
    other = await client.post("/v1/api-keys", json=wanted(tenant, "ops"), headers=headers)
    assert (first.status_code, again.status_code, again.json()["code"]) == (201, 409, "conflict")
    assert "shown once" in again.json()["detail"]
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")
    assert len((await client.get("/v1/api-keys")).json()["data"]) == 2
    secret = first.json()["key"].removeprefix(f"ck_{first.json()['public_id']}_")
    async with database_of(app).connect() as conn:
        stored = (await conn.exec_driver_sql("SELECT response FROM idempotency_keys")).scalars().all()
    assert stored
    assert not any(secret.encode() in response for response in stored)
