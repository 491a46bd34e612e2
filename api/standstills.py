"""Tells of a job that waits whether it waits for a paused provider; asks the database once in a while, not per job."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from compaction.core.jobs import SELF_FENCE_SECONDS
from compaction.core.jsonbytes import Json
from compaction.store import standstills
from compaction.store.engine import Database
from compaction.store.job_rows import JobRow
from compaction.store.standstills import Standstill

FRESH_SECONDS = 1.0  # a poller a second late is none the wiser
SILENT_SECONDS = float(SELF_FENCE_SECONDS)  # without a beat for so long a worker has given its jobs up
_COULD_START = frozenset({"queued", "retrying"})


class Standstills:
    """The standstill as this process knows it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._due = 0.0
        self._known: Standstill | None = None

    async def progress(self, row: JobRow) -> dict[str, Json]:
        """The job's progress; of one that only a paused provider keeps from starting, what it waits for."""
        if row.status not in _COULD_START or row.not_before > datetime.now(UTC):
            return row.progress
        known = await self._fresh()
        if known is None:
            return row.progress
        until = None if known.until is None else known.until.isoformat()
        return {"step": "waiting", "reason": "provider_paused", "cause": known.cause, "until": until}

    async def _fresh(self) -> Standstill | None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + FRESH_SECONDS
            async with self._database.connect() as conn:
                self._known = await standstills.standstill(conn, SILENT_SECONDS)
        return self._known
