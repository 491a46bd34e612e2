"""Which tables the database has, asked for at most every few seconds: anybody may ask whether the service is ready."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from compaction.store import migrate
from compaction.store.engine import Database

FRESH_SECONDS = 5.0  # probes come every few seconds; a migration is noticed soon enough


class Revision:
    """The database's revision, remembered for a while; callers that come together share one question."""

    def __init__(self, ask: Callable[[], Awaitable[str | None]], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = asyncio.Lock()
        self._known: str | None = None
        self._due = float("-inf")

    async def read(self) -> str | None:
        """The revision; None for a database without tables. Raises errors.Unavailable, and then remembers nothing."""
        async with self._lock:
            if self._clock() >= self._due:
                self._known = await self._ask()
                self._due = self._clock() + FRESH_SECONDS
            return self._known


def revision_of(database: Database) -> Revision:
    """Asks over the pool."""

    async def ask() -> str | None:
        async with database.connect() as conn:
            return await migrate.applied(conn)

    return Revision(ask)
