"""How jobs ended is counted once per period by the leading worker, so that the dashboard counts no million rows."""

from __future__ import annotations

import time

from compaction.store import tallies
from compaction.store.engine import Database

CATCH_UP_SECONDS = 0.5  # between two steps while periods are left: an hour of jobs each
LOOK_SECONDS = 15.0  # between two looks whether a period is over
PRUNE_SECONDS = 3_600.0


class Tallying:
    """Counts what is over, a step at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._due = 0.0
        self._prune_at = 0.0

    async def turn(self) -> None:
        """The next step, when it is due. Raises Unavailable."""
        now = time.monotonic()
        if now < self._due:
            return
        async with self._database.begin() as conn:
            more = await tallies.count_next(conn)
            if now >= self._prune_at:
                await tallies.prune(conn)
                self._prune_at = now + PRUNE_SECONDS
        self._due = now + (CATCH_UP_SECONDS if more else LOOK_SECONDS)
