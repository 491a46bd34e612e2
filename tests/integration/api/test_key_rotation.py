"""A key is replaced by a new one of the same scopes, and works beside it for a while."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from compaction.store import tenants
from compaction.store.tenants import OPERATOR_TENANT, SCOPES
from tests.integration.api.conftest import KEY, speaking_to
from tests.integration.api.stage import database_of

pytestmark = pytest.mark.anyio


async def key_of(admin: httpx2.AsyncClient, tenant: str, *scopes: str, **more: str) -> dict[str, Any]:
    """A new key that the operator made."""
    made = await admin.post("/v1/api-keys", json={"tenant": tenant, "scopes": list(scopes)} | more)
    assert made.status_code == 201, made.text
    key: dict[str, Any] = made.json()
    return key


async def opens(app: FastAPI, key: str) -> bool:
    async with speaking_to(app, key) as holder:
        return (await holder.get("/v1/compactions")).status_code == 200


async def let_time_pass(app: FastAPI, public_id: str, seconds: int) -> None:
    async with database_of(app).begin() as conn:
        statement = "UPDATE api_keys SET revoked_at = revoked_at - %s * interval '1 second' WHERE public_id = %s"
        await conn.exec_driver_sql(statement, (seconds, public_id))


async def test_old_and_new_key_work_until_the_grace_ends(app: FastAPI, admin: httpx2.AsyncClient) -> None:
    old = await key_of(admin, "rolling", *SCOPES)
    async with speaking_to(app, old["key"]) as holder:
        answer = await holder.post(f"/v1/api-keys/{old['public_id']}/rotate", json={"grace_seconds": 60})
        new = answer.json()
        assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
        assert (new["tenant"], set(new["scopes"]), new["expires_at"]) == ("rolling", set(SCOPES), None)
        assert new["public_id"] != old["public_id"]
        listed = {key["public_id"]: key["revoked_at"] for key in (await holder.get("/v1/api-keys")).json()["data"]}
    assert listed[new["public_id"]] is None
    left = datetime.fromisoformat(str(listed[old["public_id"]])) - datetime.now(UTC)
    assert timedelta(0) < left <= timedelta(seconds=60)
    assert (await opens(app, old["key"]), await opens(app, new["key"])) == (True, True)
    await let_time_pass(app, old["public_id"], 61)
    assert (await opens(app, old["key"]), await opens(app, new["key"])) == (False, True)


async def test_without_a_grace_the_old_key_ends_at_once(app: FastAPI, admin: httpx2.AsyncClient) -> None:
    old, keeper = await key_of(admin, "leaked", "read"), await key_of(admin, "leaked", "admin", "read")
    async with speaking_to(app, keeper["key"]) as holder:
        new = (await holder.post(f"/v1/api-keys/{old['public_id']}/rotate", json={"grace_seconds": 0})).json()
        assert (await opens(app, old["key"]), await opens(app, new["key"])) == (False, True)
        again = await holder.post(f"/v1/api-keys/{old['public_id']}/rotate", json={})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


async def test_a_key_in_its_grace_can_still_be_revoked_at_once(app: FastAPI, admin: httpx2.AsyncClient) -> None:
    old = await key_of(admin, "hurried", *SCOPES)
    async with speaking_to(app, old["key"]) as holder:
        new = (await holder.post(f"/v1/api-keys/{old['public_id']}/rotate", json={})).json()
    async with speaking_to(app, new["key"]) as holder:
        assert await opens(app, old["key"])
        assert (await holder.delete(f"/v1/api-keys/{old['public_id']}")).status_code == 204
    assert not await opens(app, old["key"])


async def test_a_rotation_makes_no_key_that_reaches_further(app: FastAPI, admin: httpx2.AsyncClient) -> None:
    """An admin without the other scopes would else rotate the strongest key of its tenant and hold it."""
    strong, weak = await key_of(admin, "climbing", *SCOPES), await key_of(admin, "climbing", "admin")
    async with speaking_to(app, weak["key"]) as climber:
        answer = await climber.post(f"/v1/api-keys/{strong['public_id']}/rotate", json={})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert await opens(app, strong["key"])


async def test_the_new_key_expires_as_the_old_one_unless_it_says_otherwise(
    app: FastAPI, admin: httpx2.AsyncClient
) -> None:
    old = await key_of(admin, "mortal", *SCOPES, expires_at="2999-01-01T00:00:00Z")
    async with speaking_to(app, old["key"]) as holder:
        path = f"/v1/api-keys/{old['public_id']}/rotate"
        assert (await holder.post(path, json={})).json()["expires_at"] == "2999-01-01T00:00:00Z"
        longer = await holder.post(path, json={"expires_at": "3999-01-01T00:00:00Z"})
        assert longer.json()["expires_at"] == "3999-01-01T00:00:00Z"
        for wrong in ({"expires_at": "2001-01-01T00:00:00Z"}, {"grace_seconds": -1}, {"grace_seconds": 2_592_001}):
            assert (await holder.post(path, json=wrong)).status_code == 422, wrong


async def test_a_rotation_sent_again_makes_no_second_key(app: FastAPI, admin: httpx2.AsyncClient) -> None:
    old = await key_of(admin, "repeated", *SCOPES)
    async with speaking_to(app, old["key"]) as holder:
        path, headers = f"/v1/api-keys/{old['public_id']}/rotate", {"Idempotency-Key": "turn"}
        answers = [await holder.post(path, json={}, headers=headers) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [201, 409]
        assert len((await holder.get("/v1/api-keys")).json()["data"]) == 2


async def test_a_rotated_first_key_does_not_come_back_with_the_next_start(
    app: FastAPI, admin: httpx2.AsyncClient
) -> None:
    """The start makes the key of the environment valid, but not one that its holder has replaced."""
    bootstrap = "ck_bootstr9_" + "b" * 43
    async with database_of(app).begin() as conn:
        await tenants.bootstrap(conn, bootstrap, "pepper")
    async with speaking_to(app, bootstrap) as operator:
        new = (await operator.post("/v1/api-keys/bootstr9/rotate", json={"grace_seconds": 0})).json()
    async with database_of(app).begin() as conn:
        await tenants.bootstrap(conn, bootstrap, "pepper")
    assert (await opens(app, bootstrap), await opens(app, new["key"]), await opens(app, KEY)) == (False, True, True)
    assert new["tenant"] == OPERATOR_TENANT
