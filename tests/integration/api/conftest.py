"""An application on a real database, spoken to over ASGI, with a doorbell that only remembers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import pytest
from fastapi import FastAPI

from api.app import create_app
from compaction.settings import Settings, settings_from

KEY = "ck_bootstr1_" + "a" * 43


@dataclass
class RememberingDoorbell:
    """Remembers the jobs that it was rung for; `answers` is what it says of its success."""

    answers: bool = True
    rung: list[str] = field(default_factory=list)

    async def ring(self, job_id: str) -> bool:
        self.rung.append(job_id)
        return self.answers


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    return settings_from(
        {
            "COMPACTD_DATABASE_URL": database_url,
            "COMPACTD_REDIS_URL": redis_url,
            "COMPACTD_BOOTSTRAP_API_KEY": KEY,
            "COMPACTD_KEY_PEPPER": "pepper",
            "COMPACTD_DATABASE_POOL": "5",
        }
    )


@pytest.fixture
def doorbell() -> RememberingDoorbell:
    return RememberingDoorbell()


@pytest.fixture
async def app(settings: Settings, doorbell: RememberingDoorbell) -> AsyncIterator[FastAPI]:
    application = create_app(settings, doorbell=doorbell)
    async with application.router.lifespan_context(application):
        yield application


@asynccontextmanager
async def speaking_to(app: FastAPI, key: str | None = KEY) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://api", headers=headers) as client:
        yield client


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with speaking_to(app) as speaking:
        yield speaking


@pytest.fixture
async def stranger(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """Somebody without a key."""
    async with speaking_to(app, None) as speaking:
        yield speaking
