"""Tenants are walls: every route that the OpenAPI document knows is tried with the ids of another tenant.

The routes, their parameters and their bodies are read from the document (`owned.py`), the statements that they send to
the database are watched (`overseer.py`). A new route is covered as soon as it is in the document; one whose parameter
cannot be filled fails here by its name.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from compaction.store.tenants import SCOPES
from tests.integration.api import overseer
from tests.integration.api.conftest import KEY, speaking_to
from tests.integration.api.overseer import Overseer
from tests.integration.api.owned import CANARY, CHOSEN, NOBODYS, Operation, Owner, operations
from tests.integration.api.stage import database_of, succeed

pytestmark = pytest.mark.anyio

OPEN = {"/healthz", "/readyz", "/metrics"}  # no key is asked for, and no word of a tenant stands in them
NO_ONES = {"job_id": "01a22e26-5941-7380-aaa5-3156a0f6644b", "key": "nothing/here"}  # well-formed, and nobody's
NO_ONES_ID = "00000000-0000-7000-8000-000000000000"
OTHER_WAYS: tuple[
    dict[str, str], ...
] = (  # to ask for the same: as ever, as a stream, with patience, as it is known already
    {},
    {"Accept": "text/event-stream", "Last-Event-ID": "0"},
    {"Accept": "application/x-ndjson", "Prefer": "wait=1"},
    {"If-None-Match": "*"},
)
TRANSCRIPT = json.dumps([{"role": "user", "content": CANARY}, {"role": "assistant", "content": CANARY}]).encode()
_numbers = itertools.count(1)


@dataclass
class Scene:
    """An application in which one tenant owns one of everything."""

    app: FastAPI
    calls: list[Operation]
    owner: Owner
    tenant_id: int

    @asynccontextmanager
    async def tenant(self, *scopes: str, name: str | None = None) -> AsyncIterator[httpx2.AsyncClient]:
        """A caller with these scopes, of a tenant that has nothing unless it is named."""
        wanted = {"tenant": name or f"intruder-{next(_numbers)}", "scopes": list(scopes)}
        async with speaking_to(self.app, KEY) as admin:
            key = (await admin.post("/v1/api-keys", json=wanted)).json()["key"]
        async with speaking_to(self.app, key) as client:
            yield client

    async def state(self) -> dict[str, list[str]]:
        return await overseer.state_of(database_of(self.app), self.tenant_id)


@pytest.fixture(scope="module")
async def scene(app: FastAPI) -> AsyncIterator[Scene]:
    await overseer.move_apart(database_of(app))
    async with owner_of_everything(app, "owner") as made:
        yield made


@asynccontextmanager
async def owner_of_everything(app: FastAPI, tenant: str) -> AsyncIterator[Scene]:
    async with speaking_to(app, KEY) as admin:
        document = (await admin.get("/openapi.json")).json()
        key = (await admin.post("/v1/api-keys", json={"tenant": tenant, "scopes": list(SCOPES)})).json()["key"]
    calls = [operation for operation in operations(document) if operation.path not in OPEN]
    async with speaking_to(app, key) as client:
        owner = Owner(tenant, client, calls, {"job_id": lambda job_id: succeed(app, job_id)})
        await owner.settle()
        yield Scene(app, calls, owner, await overseer.tenant_id_of(database_of(app), tenant))


async def send(  # noqa: PLR0913 - what a call can be varied in
    client: httpx2.AsyncClient,
    operation: Operation,
    owner: Owner,
    *,
    filters: bool = True,
    instead: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx2.Response:
    """The call with the owner's things wherever it names one, also behind the `?` unless `filters` is off."""
    address, query = owner.address(operation, instead or {}), owner.query(operation) if filters else {}
    if "application/octet-stream" in operation.details.get("requestBody", {}).get("content", {}):
        return await client.request(operation.method, address, params=query, content=TRANSCRIPT, headers=headers)
    body = owner.body(operation, instead or {})
    assert body is not None or "requestBody" not in operation.details, f"{operation} shows no example of its body"
    return await client.request(operation.method, address, params=query, json=body, headers=headers)


def said(answer: httpx2.Response) -> tuple[int, Any]:
    """What a caller learns: the status and the document, without what differs between any two requests."""
    document = answer.json() if answer.content else None
    if isinstance(document, dict):
        document.pop("request_id", None)
    return answer.status_code, document


async def test_nobody_reaches_what_another_tenant_owns(scene: Scene) -> None:
    """Each call by a tenant of its own that has nothing: 404, not a word of the owner's, and nothing is changed."""
    before = await scene.state()
    secrets = {CANARY, *scene.owner.things.values()} - {CHOSEN}  # names that others may choose as well
    tried = 0
    for operation in scene.calls:
        async with scene.tenant(*SCOPES) as intruder:
            answer = await send(intruder, operation, scene.owner)
            told = answer.text
            for headers in OTHER_WAYS:
                told += (await send(intruder, operation, scene.owner, filters=False, headers=headers)).text
        assert not [secret for secret in secrets if secret in told], (str(operation), told)
        assert (await scene.state()) == before, f"{operation} changed what another tenant owns"
        if set(operation.names) & set(NOBODYS):
            assert answer.status_code == 403, (str(operation), told)  # the operator's, whatever is named
        elif scene.owner.names_something(operation):
            assert answer.status_code == 404, (str(operation), told)
            assert answer.json()["code"] == "not_found"
            tried += 1
        else:
            assert answer.status_code < 500, (str(operation), told)
    assert tried >= 15, "the document has lost its routes"


async def test_what_another_tenant_owns_looks_like_what_nobody_owns(scene: Scene) -> None:
    """The answers are the same word for word: nobody learns that an id is taken."""
    for operation in scene.calls:
        if not operation.names or set(operation.names) & set(NOBODYS):
            continue
        others = {name: NO_ONES.get(name, NO_ONES_ID) for name in scene.owner.things}
        async with scene.tenant(*SCOPES) as intruder:
            taken = await send(intruder, operation, scene.owner)
        async with scene.tenant(*SCOPES) as intruder:
            free = await send(intruder, operation, scene.owner, instead=others)
        if taken.status_code == 404:
            assert said(taken) == said(free), str(operation)


async def test_a_key_without_the_scope_learns_nothing_and_changes_nothing(scene: Scene) -> None:
    """With each scope alone: a refusal that comes before anything is looked up, or the 404 of the wall."""
    before = await scene.state()
    refusals: dict[str, int] = {}
    others = {name: NO_ONES.get(name, NO_ONES_ID) for name in scene.owner.things}
    for scope in SCOPES:
        for operation in scene.calls:
            async with scene.tenant(scope) as intruder:
                answer = await send(intruder, operation, scene.owner)
            assert answer.status_code < 500, str(operation)
            if answer.status_code == 403:
                refusals[str(operation)] = refusals.get(str(operation), 0) + 1
                async with scene.tenant(scope) as intruder:
                    free = await send(intruder, operation, scene.owner, instead=others)
                assert said(answer) == said(free), str(operation)
    assert await scene.state() == before
    assert [str(operation) for operation in scene.calls if str(operation) not in refusals] == []


async def test_without_a_key_every_call_is_unauthorized(scene: Scene) -> None:
    before = await scene.state()
    async with speaking_to(scene.app, None) as stranger:
        for operation in scene.calls:
            answer = await send(stranger, operation, scene.owner)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), str(operation)
    assert await scene.state() == before


async def test_an_idempotency_key_gives_nobody_anothers_answer(scene: Scene) -> None:
    """Two tenants may choose the same key for the same request: the second one gets an answer of its own."""
    headers = {"Idempotency-Key": "the-same-for-all"}
    for operation in scene.calls:
        if operation.method != "post" or set(operation.names) & set(NOBODYS):
            continue
        async with owner_of_everything(scene.app, f"first-{next(_numbers)}") as first:
            await send(first.owner.client, operation, first.owner, headers=headers)
            async with scene.tenant(*SCOPES) as second:
                answer = await send(second, operation, first.owner, headers=headers)
        assert "Idempotent-Replayed" not in answer.headers, str(operation)
        assert answer.json().get("code") != "idempotency_mismatch", str(operation)
        assert not [one for one in first.owner.things.values() if one != CHOSEN and one in answer.text], str(operation)


async def test_the_owner_is_let_in_where_others_are_not(app: FastAPI, scene: Scene) -> None:
    """Else a 404 of the other tests would say nothing; calls that take something away come last."""
    async with owner_of_everything(app, "second-owner") as second:
        for operation in sorted(second.calls, key=lambda operation: operation.method == "delete"):
            answer = await send(second.owner.client, operation, second.owner)
            if not (answer.status_code == 403 and "operator" in answer.json()["detail"]):
                assert answer.is_success or answer.status_code == 409, (str(operation), answer.text)


async def test_every_statement_of_the_api_names_its_caller(app: FastAPI, scene: Scene) -> None:
    """Over tenants' tables no statement runs without the caller's tenant, or a row that a walled one has found."""
    database = database_of(app)
    watch = Overseer(database)
    unwalled: set[str] = set()
    async with owner_of_everything(app, "watched") as watched:
        for operation in sorted(watched.calls, key=lambda operation: operation.method == "delete"):
            own = await overseer.ids_of(database, watched.tenant_id)
            with watch.watching():
                for filters in (True, False):
                    await send(watched.owner.client, operation, watched.owner, filters=filters)
            own |= await overseer.ids_of(database, watched.tenant_id)
            for statement in watch.take():
                if statement.needs_a_wall and not own & statement.named():
                    unwalled.add(f"{operation}: {statement.text}")
    assert unwalled == set()
