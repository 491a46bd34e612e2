"""What makes the doorbell's losses harmless: one worker at a time rings for due rows and takes back expired leases.

Every worker carries a reconciler; an advisory lock lets one lead. Two leaders at once would do no harm: rows are marked
by one of them, tokens are checked.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from compaction import telemetry
from compaction.errors import CompactdError
from compaction.store import jobs as job_rows
from compaction.store import leader
from compaction.store import workers as worker_rows
from compaction.store.engine import Database
from worker import metrics
from worker.bulk import Conductor
from worker.dispatcher import Dispatcher
from worker.gauges import QueueGauges
from worker.retention import Retention
from worker.tallying import Tallying
from worker.webhooks import Courier

SILENT_TURNS = 10  # a leader that misses so many turns is frozen or cut off; another one takes over
LEAST_SILENCE_SECONDS = 5.0  # with very short turns a busy machine is no frozen one
BATCH = 200  # expired leases per turn
BUSY_SECONDS = 0.1  # between two turns while jobs wait for slots (facts/queue.md §3.2)
FORGET_LEASES = 10  # a worker that was silent for so many leases is off the list
FORGET_EVERY_SECONDS = 30.0

_log = telemetry.logger("reconciler")


class Alarm(Protocol):
    """Lets the leader sleep, and wakes it when something came."""

    async def sleep(self, seconds: float) -> None:
        """Returns after `seconds` or sooner; never raises."""
        ...


class Reconciler:
    """Turns once every `every_seconds` while this process leads, more often while jobs wait for slots."""

    def __init__(  # noqa: PLR0913 - the chores, and how often
        self,
        *,
        database: Database,
        dispatcher: Dispatcher,
        alarm: Alarm,
        retention: Retention,
        tallying: Tallying,
        courier: Courier,
        conductor: Conductor,
        gauges: QueueGauges,
        every_seconds: float,
        lease_seconds: float,
        heartbeat_seconds: float,
    ) -> None:
        self._database = database
        self._dispatcher = dispatcher
        self._alarm = alarm
        self._retention = retention
        self._tallying = tallying
        self._courier = courier
        self._conductor = conductor
        self._gauges = gauges
        self._every_seconds = every_seconds
        self._forget_seconds = FORGET_LEASES * lease_seconds
        self._grace_seconds = heartbeat_seconds
        self._reap_at = 0.0
        self._chores_at = 0.0
        self._forget_at = 0.0
        self._prune_at = time.monotonic() + every_seconds

    async def turn_for_ever(self) -> None:
        """Tries to lead, and leads until the connection breaks or the task is cancelled."""
        while True:
            try:
                await self._lead()
            except CompactdError as error:
                _log.warning("reconciler.missed", code=error.code)
            except Exception as error:  # noqa: BLE001 - without a reconciler nobody would ring for what waits
                _log.error("reconciler.fault", **telemetry.failure(error))
            await asyncio.sleep(self._every_seconds)

    async def turn(self) -> bool:
        """One turn: reap, send news, move bulk runs, ring for what is next, tidy up. Whether jobs wait for slots."""
        if time.monotonic() >= self._chores_at:  # while jobs wait for slots, turns come faster than chores need
            self._chores_at = time.monotonic() + self._every_seconds
            if time.monotonic() >= self._reap_at:
                await self._reap()
            self._courier.turn()
            self._conductor.turn()
        waiting = await self._dispatcher.turn()
        await self._tidy()
        await self._gauges.turned(self._dispatcher.broker_length)
        return waiting

    async def _lead(self) -> None:
        async with self._database.connect() as conn:
            silence_seconds = max(LEAST_SILENCE_SECONDS, SILENT_TURNS * self._every_seconds)
            if not await leader.try_lead(conn, silence_seconds):
                return
            _log.info("reconciler.leads")
            # Postgres may have been away: leases that ended meanwhile belong to workers whose first beat is on its way.
            self._reap_at = time.monotonic() + self._grace_seconds
            try:
                while await leader.try_lead(conn, silence_seconds):
                    waiting = await self.turn()
                    await self._rest(waiting=waiting)
            finally:
                self._gauges.stepped_down()
                await leader.step_down(conn)

    async def _rest(self, *, waiting: bool) -> None:
        """Sleeps a moment, and then, unless jobs wait for slots, until the next turn is due or somebody wakes us."""
        pause_seconds = min(BUSY_SECONDS, self._every_seconds)
        await asyncio.sleep(pause_seconds)
        if not waiting and self._every_seconds > pause_seconds:
            await self._alarm.sleep(self._every_seconds - pause_seconds)

    async def _reap(self) -> None:
        async with self._database.begin() as conn:
            reaped = await job_rows.reap_expired(conn, BATCH)
        metrics.LEASES_EXPIRED.inc(len(reaped))
        metrics.DEAD.inc(sum(one.crashed_out for one in reaped))
        for one in reaped:
            _log.warning("job.lease_expired", job_id=one.job_id, token=one.token, gave_up=one.crashed_out)

    async def _tidy(self) -> None:
        now = time.monotonic()
        if now >= self._forget_at:
            self._forget_at = now + FORGET_EVERY_SECONDS
            async with self._database.connect() as conn:
                gone = await worker_rows.forget_silent(conn, self._forget_seconds)
            if gone:
                _log.warning("worker.silent", workers=gone)
        await self._tallying.turn()
        if now >= self._prune_at:
            self._prune_at = now + await self._retention.step()
