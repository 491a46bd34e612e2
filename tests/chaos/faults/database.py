"""A database that restarts, hangs up and says nothing; two leaders; an API that dies between commit and answer."""

from __future__ import annotations

import asyncio
import time

from compaction.settings import settings_from
from compaction.store.engine import Database
from tests.chaos.arena import LEASE_SECONDS, SETTINGS
from tests.chaos.faults.workers import FINISHING
from tests.chaos.proxy import Link
from tests.chaos.scene import Later, Scene
from tests.chaos.slots import Slot
from worker.bootstrap import _reconciler as reconciler_of
from worker.dispatch import Doorbell

COMMITTING = rb"COMMIT"
TWO_LEADERS_SECONDS = 2.0


def restart_mid_commit(scene: Scene) -> None:
    """An immediate stop of Postgres when a commit is on its way."""
    scene.catch(FINISHING, lambda _worker, _link: None)
    scene.arena.record.injected("Postgres restarted mid-commit", scene.arena.busy_calls)
    scene.arena.crash_postgres()
    scene.arena.postgres.start()


def cut_between_commit_and_answer(scene: Scene) -> None:
    """The commit of a result is done, its answer is lost, the worker lives and asks again."""

    def act(_worker: Slot, _link: Link) -> None:
        scene.arena.record.injected("cut between commit and answer")

    scene.catch(FINISHING, act, when="after")


def hang_up(scene: Scene) -> None:
    """All database connections of a worker are reset, and its calls go on."""
    worker = scene.busy_worker()
    scene.arena.record.injected("database connections dropped", worker.busy_calls)
    worker.postgres.cut()


def say_nothing(scene: Scene) -> Later:
    """Half-open past the lease: the worker cannot renew, gives up by itself, and what it sends comes too late."""
    worker = scene.busy_worker()
    scene.arena.record.injected("database half-open past the lease", worker.busy_calls)
    worker.postgres.block()
    worker.strike()
    worker.is_held = True

    def speak() -> None:
        worker.postgres.unblock()
        worker.is_held = False

    return Later(LEASE_SECONDS + 2, speak)


def depose_the_leader(scene: Scene) -> None:
    """The leader's connection ends in the middle of its turn; another leads at once."""
    scene.arena.record.injected("leader deposed")
    scene.arena.rows("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")


def lead_twice(scene: Scene) -> None:
    """A second leader that knows of no lock reaps and rings as fast as it can."""
    scene.arena.record.injected("two leaders at once")
    asyncio.run(_lead(scene))


async def _lead(scene: Scene) -> None:
    environment = {"COMPACTD_DATABASE_URL": scene.arena.direct_url, "COMPACTD_REDIS_URL": scene.arena.valkey.url()}
    settings = settings_from(environment | SETTINGS)
    database, doorbell = Database(settings.database_url, pool_size=2), Doorbell(settings.redis_url)
    second = reconciler_of(settings, database, doorbell)
    end = time.monotonic() + TWO_LEADERS_SECONDS
    while time.monotonic() < end:
        await second.turn()
        await asyncio.sleep(0.05)
    await doorbell.aclose()
    await database.close()


def kill_the_api_before_its_answer(scene: Scene) -> None:
    """Signal 9 when the job is committed and its 202 is not sent."""
    api = scene.arena.api

    def act(_link: Link) -> None:
        scene.arena.record.injected("kill -9 of the API between commit and 202")
        api.kill()

    scene.producer.order(4)
    scene.catch_at(api.postgres, COMMITTING, act, when="after")
    api.wait_ready()


def cut_the_api_before_its_answer(scene: Scene) -> None:
    """The job is committed, and the API loses the answer: the producer asks again under the same key."""

    def act(_link: Link) -> None:
        scene.arena.record.injected("API cut between commit and answer")

    scene.producer.order(4)
    scene.catch_at(scene.arena.api.postgres, COMMITTING, act, when="after")
