"""What makes the doorbell's losses harmless: one worker at a time rings for due rows and takes back expired leases.

Every worker carries a reconciler; an advisory lock lets one lead. Two leaders at once would do no harm: rows are locked
and skipped, tokens are checked.
"""

from __future__ import annotations

import asyncio

from compaction import telemetry
from compaction.errors import CompactdError
from compaction.store import jobs as job_rows
from compaction.store import leader
from compaction.store.engine import Database
from worker.dispatch import Doorbell

SILENT_TURNS = 10  # a leader that misses so many turns is frozen or cut off; another one takes over
BATCH = 200  # rows per turn; the next turn comes within a second

_log = telemetry.logger("reconciler")


class Reconciler:
    """Turns once every `every_seconds` while this process leads."""

    def __init__(
        self, *, database: Database, doorbell: Doorbell, every_seconds: float, redispatch_seconds: float
    ) -> None:
        self._database = database
        self._doorbell = doorbell
        self._every_seconds = every_seconds
        self._redispatch_seconds = redispatch_seconds

    async def turn_for_ever(self) -> None:
        """Tries to lead, and leads until the connection breaks or the task is cancelled."""
        while True:
            try:
                await self._lead()
            except CompactdError as error:
                _log.warning("reconciler.missed", code=error.code)
            await asyncio.sleep(self._every_seconds)

    async def turn(self) -> None:
        """One turn: reap expired leases, then ring for what is due."""
        async with self._database.begin() as conn:
            reaped = await job_rows.reap_expired(conn, BATCH)
        for one in reaped:
            _log.warning("job.lease_expired", job_id=one.job_id, token=one.token, gave_up=one.crashed_out)
        async with self._database.begin() as conn:
            due = await job_rows.due(conn, BATCH, self._redispatch_seconds)
        for job_id in due:
            await self._doorbell.ring(job_id)

    async def _lead(self) -> None:
        async with self._database.connect() as conn:
            silence_seconds = SILENT_TURNS * self._every_seconds
            if not await leader.try_lead(conn, silence_seconds):
                return
            _log.info("reconciler.leads")
            while await leader.try_lead(conn, silence_seconds):
                await self.turn()
                await asyncio.sleep(self._every_seconds)
