"""Keeps the count of waiting jobs fresh behind the answers, so that no enqueue has to count (`store.depths`)."""

from __future__ import annotations

import asyncio
import time

from compaction import telemetry
from compaction.errors import CompactdError
from compaction.store import depths
from compaction.store.engine import Database

_log = telemetry.logger("depths")


class Depths:
    """Asks for a new count when jobs come in and the last one is old."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._due = 0.0
        self._task: asyncio.Task[None] | None = None

    def note(self) -> None:
        """A job came in; returns at once."""
        if time.monotonic() >= self._due and (self._task is None or self._task.done()):
            self._due = time.monotonic() + depths.FRESH_SECONDS
            self._task = asyncio.create_task(self._refresh())

    async def close(self) -> None:
        """Waits for a count under way."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def _refresh(self) -> None:
        try:
            async with self._database.begin() as conn:
                await depths.refresh(conn)
        except CompactdError as error:  # the next one will do: meanwhile more is counted on the spot
            _log.warning("depths.missed", code=error.code)
