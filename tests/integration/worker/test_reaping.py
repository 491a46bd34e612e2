"""A new leader takes nothing away before the living could beat: Postgres may have been away past their leases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from compaction.settings import settings_from
from compaction.store.engine import Database
from ops.embedded import Valkey
from tests.integration.store.stage import Stage, staged
from worker.bootstrap import _reconciler as reconciler_of
from worker.dispatch import Doorbell

pytestmark = pytest.mark.anyio

TURNS = 3


@dataclass
class Turns:
    """An alarm that lets the leader sleep for a moment only, and knows when it has turned often enough."""

    enough: asyncio.Event = field(default_factory=asyncio.Event)
    slept: int = 0

    async def sleep(self, _seconds: float) -> None:
        self.slept += 1
        if self.slept >= TURNS:
            self.enough.set()


@pytest.fixture
async def stage(database_url: str) -> AsyncIterator[Stage]:
    database = Database(database_url, pool_size=4)
    yield await staged(database)
    await database.close()


async def status_after_turns(stage: Stage, database_url: str, valkey: Valkey, heartbeat_seconds: str) -> str:
    """What became of a job whose lease had ended when somebody began to lead."""
    claim = await stage.running(await stage.session())
    await stage.expire(claim)
    settings = settings_from(
        {
            "COMPACTD_DATABASE_URL": database_url,
            "COMPACTD_REDIS_URL": valkey.url(),
            "COMPACTD_RECONCILE_SECONDS": "0.2",
            "COMPACTD_HEARTBEAT_SECONDS": heartbeat_seconds,
            "COMPACTD_LEASE_SECONDS": "60",
        }
    )
    doorbell = Doorbell(settings.redis_url)
    reconciler, turns = reconciler_of(settings, stage.database, doorbell), Turns()
    reconciler._alarm = turns
    task = asyncio.create_task(reconciler.turn_for_ever())
    await turns.enough.wait()
    task.cancel()
    await asyncio.wait((task,))
    await doorbell.aclose()
    return (await stage.job(claim.job.id)).status


async def test_a_leader_waits_for_one_beat(stage: Stage, database_url: str, valkey: Valkey) -> None:
    assert await status_after_turns(stage, database_url, valkey, heartbeat_seconds="20") == "running"


async def test_then_it_takes_ended_leases_away(stage: Stage, database_url: str, valkey: Valkey) -> None:
    """A tenth of a second is over long before the last of the turns."""
    assert await status_after_turns(stage, database_url, valkey, heartbeat_seconds="0.1") == "retrying"
