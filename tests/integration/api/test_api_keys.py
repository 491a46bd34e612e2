"""Keys: who may make, see and revoke whose."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from fastapi import FastAPI

from compaction.store.tenants import OPERATOR_TENANT, SCOPES
from tests.integration.api.conftest import speaking_to

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def holder_of(
    app: FastAPI, admin: httpx2.AsyncClient, tenant: str, *scopes: str
) -> AsyncIterator[httpx2.AsyncClient]:
    """Somebody with a new key that the operator made."""
    made = await admin.post("/v1/api-keys", json={"tenant": tenant, "scopes": list(scopes)})
    async with speaking_to(app, made.json()["key"]) as client:
        yield client


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
