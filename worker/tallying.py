"""How jobs ended is counted once per period by the leading worker, so that the dashboard counts no million rows."""

from __future__ import annotations

import time

from compaction import telemetry
from compaction.errors import CompactdError
from compaction.store import tallies
from compaction.store.engine import Database

CATCH_UP_SECONDS = 0.5  # between two steps while periods are left: an hour of jobs each
LOOK_SECONDS = 15.0  # between two looks whether a period is over
PRUNE_SECONDS = 3_600.0

_log = telemetry.logger("tallying")


class Tallying:
    """Counts what is over, a step at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._due = 0.0
        self._prune_at = 0.0

    async def turn(self) -> None:
        """The next step, when it is due. Never raises: a count that comes later is no reason to stop leading."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + LOOK_SECONDS
        try:
            await self._step(now)
        except CompactdError as error:
            _log.warning("tallies.missed", code=error.code)

    async def _step(self, now: float) -> None:
        async with self._database.begin() as conn:
            more = await tallies.count_next(conn)
            if now >= self._prune_at:
                await tallies.prune(conn)
                self._prune_at = now + PRUNE_SECONDS
        if more:
            self._due = now + CATCH_UP_SECONDS
