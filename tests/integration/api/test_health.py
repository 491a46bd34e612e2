from __future__ import annotations

import httpx2
import psycopg
import pytest
from fastapi import FastAPI

from api.app import create_app
from compaction.settings import Settings
from compaction.store import workers
from tests.integration.api.conftest import RememberingDoorbell, speaking_to
from tests.integration.api.stage import database_of

pytestmark = pytest.mark.anyio


async def test_health_and_readiness_need_no_key(app: FastAPI, stranger: httpx2.AsyncClient) -> None:
    assert (await stranger.get("/healthz")).json()["status"] == "ok"
    answer = await stranger.get("/readyz")
    assert answer.status_code == 200
    parts = answer.json()["parts"]
    assert parts["database"]["ok"]
    assert parts["migrations"]["ok"]
    assert parts["redis"]["ok"]
    assert not parts["workers"]["ok"]
    assert answer.json()["status"] == "degraded"  # jobs are accepted, but nobody runs them
    async with database_of(app).begin() as conn:
        await workers.beat_worker(conn, "host:1:1", 4, 0, 0.0, False)
    assert (await stranger.get("/readyz")).json()["status"] == "ready"


async def test_a_redis_that_is_away_degrades_and_does_not_stop(settings: Settings) -> None:
    lonely = settings.model_copy(update={"redis_url": "redis://:secret@127.0.0.1:1/0"})
    app = create_app(lonely, doorbell=RememberingDoorbell())
    async with app.router.lifespan_context(app), speaking_to(app, None) as stranger:
        answer = await stranger.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert not answer.json()["parts"]["redis"]["ok"]
    assert "secret" not in answer.text


async def test_a_database_without_tables_is_not_ready(settings: Settings, empty_database_url: str) -> None:
    bare = settings.model_copy(update={"database_url": empty_database_url, "bootstrap_api_key": None})
    app = create_app(bare, doorbell=RememberingDoorbell())
    async with app.router.lifespan_context(app), speaking_to(app, None) as stranger:
        answer = await stranger.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "unready")
    assert not answer.json()["parts"]["migrations"]["ok"]


async def test_a_database_that_is_away_is_not_ready_and_its_password_stays_secret(settings: Settings) -> None:
    url = "postgresql+psycopg://compactd:secret@127.0.0.1:1/compactd"
    away = settings.model_copy(update={"database_url": url, "bootstrap_api_key": None})
    app = create_app(away, doorbell=RememberingDoorbell())
    async with app.router.lifespan_context(app), speaking_to(app, "ck_x") as client:
        answer = await client.get("/readyz")
        refused = await client.get("/v1/compactions", headers={"Authorization": "Bearer ck_abcdefgh_" + "a" * 43})
    assert answer.status_code == 503
    assert not answer.json()["parts"]["database"]["ok"]
    assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
    assert "secret" not in answer.text + refused.text


def _marked(database_url: str, revision: str) -> None:
    """Has the database say that it is at this revision."""
    with psycopg.connect(database_url.replace("+psycopg", "")) as conn:
        conn.execute("UPDATE alembic_version SET version_num = %s", (revision,))


async def test_a_newer_releases_migration_leaves_this_one_ready(settings: Settings, database_url: str) -> None:
    """A rolling upgrade migrates first: were the old processes unready then, nobody would serve."""
    _marked(database_url, "9999")
    ahead = settings.model_copy(update={"database_url": database_url})
    app = create_app(ahead, doorbell=RememberingDoorbell())
    async with app.router.lifespan_context(app), speaking_to(app, None) as stranger:
        answer = await stranger.get("/readyz")
    part = answer.json()["parts"]["migrations"]
    assert (answer.status_code, part) == (200, {"ok": True, "detail": "ahead: a newer release has migrated"})


async def test_an_older_schema_than_the_code_is_not_ready(settings: Settings, database_url: str) -> None:
    """It would meet columns that are not there yet."""
    _marked(database_url, "0001")
    behind = settings.model_copy(update={"database_url": database_url})
    app = create_app(behind, doorbell=RememberingDoorbell())
    async with app.router.lifespan_context(app), speaking_to(app, None) as stranger:
        assert (await stranger.get("/readyz")).status_code == 503
