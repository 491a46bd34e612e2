"""An application on a real database, spoken to over ASGI, with a doorbell that only remembers.

The tests of one module share the application; each has a tenant of its own, so none sees another's sessions and jobs.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import pytest
from fastapi import FastAPI

from api.app import create_app
from compaction.settings import Settings, settings_from
from compaction.store.tenants import SCOPES
from ops.embedded import Valkey

KEY = "ck_bootstr1_" + "a" * 43
_numbers = itertools.count(1)


@dataclass
class RememberingDoorbell:
    """Remembers the jobs that it was rung for; `answers` is what it says of its success."""

    answers: bool = True
    rung: list[str] = field(default_factory=list)

    async def ring(self, job_id: str) -> bool:
        self.rung.append(job_id)
        return self.answers

    async def wake(self) -> bool:
        return self.answers


@pytest.fixture(scope="module")
def settings(module_database_url: str, valkey: Valkey) -> Settings:
    return settings_from(
        {
            "COMPACTD_DATABASE_URL": module_database_url,
            "COMPACTD_REDIS_URL": valkey.url(),
            "COMPACTD_BOOTSTRAP_API_KEY": KEY,
            "COMPACTD_KEY_PEPPER": "pepper",
            "COMPACTD_DATABASE_POOL": "5",
            "COMPACTD_MAX_BODY_BYTES": str(4 * 2**20),
            "COMPACTD_MAX_IMPORT_BYTES": str(8 * 2**20),
        }
    )


@pytest.fixture(scope="module")
def doorbell() -> RememberingDoorbell:
    return RememberingDoorbell()


@pytest.fixture(scope="module")
async def app(settings: Settings, doorbell: RememberingDoorbell) -> AsyncIterator[FastAPI]:
    application = create_app(settings, doorbell=doorbell)
    async with application.router.lifespan_context(application):
        yield application


@asynccontextmanager
async def speaking_to(app: FastAPI, key: str | None) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://api", headers=headers) as client:
        yield client


@pytest.fixture
async def admin(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """The operator with the bootstrap key."""
    async with speaking_to(app, KEY) as speaking:
        yield speaking


@pytest.fixture
async def client(app: FastAPI, admin: httpx2.AsyncClient) -> AsyncIterator[httpx2.AsyncClient]:
    """A producer whose tenant is this test's alone."""
    wanted = {"tenant": f"tenant-{next(_numbers)}", "scopes": list(SCOPES)}
    key = (await admin.post("/v1/api-keys", json=wanted)).json()["key"]
    async with speaking_to(app, key) as speaking:
        yield speaking


@pytest.fixture
async def stranger(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """Somebody without a key."""
    async with speaking_to(app, None) as speaking:
        yield speaking
