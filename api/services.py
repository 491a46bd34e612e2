"""What the routes stand on, opened once per process: settings, database, job listener, doorbell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from starlette.requests import Request

from api import metrics
from api.depths import Depths
from api.looks import Looks
from api.rate_limit import KeyLimit
from api.revision import Revision, revision_of
from api.standstills import Standstills
from compaction import telemetry, tracing
from compaction.errors import CompactdError
from compaction.settings import Settings
from compaction.store import bodies, jobs, tenants
from compaction.store.engine import Database
from compaction.store.jobs import Enqueued
from compaction.store.notify import JobListener

MAX_RINGS = 1_000  # rings under way at once; beyond that Redis is down and the reconciler will ring
WAKE_SECONDS = 0.02  # jobs that come together wake the leader once
CLOSE_SECONDS = 2.0  # how long a stop waits for the last rings


_log = telemetry.logger("api")


class Doorbell(Protocol):
    """Tells the workers that a job waits."""

    async def ring(self, job_id: str) -> bool:
        """Whether the message was sent; never raises."""
        ...

    async def wake(self) -> bool:
        """Tells the leading worker that jobs wait; whether it was sent. Never raises."""
        ...


class OwnDoorbell(Doorbell, Protocol):
    """A doorbell that whoever made it closes."""

    async def aclose(self) -> None:
        """Closes its connections."""
        ...


class Rings:
    """Rings behind the answer: a slow Redis delays no caller; a lost ring is counted and rung again by the workers."""

    def __init__(self, doorbell: Doorbell, database: Database) -> None:
        self._doorbell = doorbell
        self._database = database
        self._under_way: set[asyncio.Task[None]] = set()
        self._waking = False
        self.lost = 0

    def ring(self, job_id: str) -> None:
        """Rings for a committed job and returns at once."""
        self._begin(self._ring(job_id))

    def wake(self) -> None:
        """Has the leading worker look at what waits, soon; returns at once."""
        if not self._waking:
            self._waking = self._begin(self._wake())

    async def close(self) -> None:
        """Waits a moment for rings under way."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=CLOSE_SECONDS)

    def _begin(self, work: Coroutine[Any, Any, None]) -> bool:
        if len(self._under_way) >= MAX_RINGS:
            self._lose()
            work.close()
            return False
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return True

    def _lose(self) -> None:
        self.lost += 1
        metrics.LOST_RINGS.inc()

    async def _wake(self) -> None:
        await asyncio.sleep(WAKE_SECONDS)
        self._waking = False
        await self._doorbell.wake()

    async def _ring(self, job_id: str) -> None:
        if await self._doorbell.ring(job_id):
            return
        self._lose()
        with suppress(CompactdError):  # then the reconciler takes a little longer to notice
            async with self._database.connect() as conn:
                await jobs.forget_ring(conn, job_id)


@dataclass(frozen=True, slots=True)
class Services:
    """The open parts; `stopping` is set when the process is asked to end, so that long waits answer at once."""

    settings: Settings
    database: Database
    listener: JobListener
    looks: Looks
    rings: Rings
    depths: Depths
    revision: Revision
    standstills: Standstills
    key_limit: KeyLimit | None = None  # None: keys may ask as often as they like
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    def enqueued(self, done: Enqueued) -> None:
        """A job was committed: rings for it if it is next, else has the leader decide; keeps the count fresh."""
        if done.ring:
            self.rings.ring(done.job.id)
        else:
            self.rings.wake()
        metrics.enqueued(done)
        ids = {"job_id": done.job.id, "session_id": done.job.session_name}
        _log.info("job.enqueued", **ids, trigger=done.job.trigger, coalesced=not done.created)
        tracing.tell({"compactd.job.id": done.job.id, "compactd.job.coalesced": not done.created})
        if done.created:
            self.depths.note()

    async def stop_waits(self) -> None:
        """Lets every long wait answer at once with what there is."""
        self.stopping.set()
        await self.listener.close()


@asynccontextmanager
async def opened(settings: Settings, doorbell: Doorbell) -> AsyncIterator[Services]:
    """The services, with the bootstrap key made valid; everything is closed afterwards."""
    bodies.use_keys(settings.body_keys)
    database = Database(settings.database_url, pool_size=settings.database_pool)
    metrics.watch(database.in_use, database.pool_size)
    listener = JobListener(database)
    rings = Rings(doorbell, database)
    depths = Depths(database)
    standstills = Standstills(database)
    per_minute = settings.key_requests_per_minute
    key_limit = None if per_minute is None else KeyLimit(per_minute, settings.redis_url)
    try:
        if settings.bootstrap_api_key:
            await _bootstrap(database, settings.bootstrap_api_key, settings.key_pepper)
        yield Services(
            settings,
            database,
            listener,
            Looks(database, standstills),
            rings,
            depths,
            revision_of(database),
            standstills,
            key_limit,
        )
    finally:
        if key_limit is not None:
            await key_limit.aclose()
        await rings.close()
        await depths.close()
        await listener.close()
        await database.close()


async def _bootstrap(database: Database, key: str, pepper: str) -> None:
    try:
        async with database.begin() as conn:
            await tenants.bootstrap(conn, key, pepper)
    except CompactdError as error:
        facts = {"doing": "COMPACTD_BOOTSTRAP_API_KEY", "code": error.code, "message": error.message}
        telemetry.logger("api").error("start.failed", **facts)
        raise


def services(request: Request) -> Services:
    """The services of the application that answers `request`."""
    held = request.app.state.services
    assert isinstance(held, Services)  # noqa: S101 - set by the application's lifespan
    return held
