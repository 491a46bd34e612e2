"""How many processes share a credential: what one of them may take alone depends on it."""

from __future__ import annotations

import time

from compaction import telemetry
from compaction.errors import CompactdError
from compaction.store import workers as worker_rows
from compaction.store.engine import Database

KNOWN_SECONDS = 10.0  # workers come and go by the minute

_log = telemetry.logger("limits")


class Sharers:
    """Counts the living workers, and remembers the count for a while."""

    def __init__(self, database: Database, provider: str, silent_seconds: float) -> None:
        self._database = database
        self._provider = provider
        self._silent_seconds = silent_seconds
        self._count = 1
        self._ask_at = 0.0

    async def __call__(self) -> int:
        """The count, at least 1; the last known one when the database is away."""
        if time.monotonic() >= self._ask_at:
            self._ask_at = time.monotonic() + KNOWN_SECONDS
            try:
                async with self._database.connect() as conn:
                    self._count = max(1, await worker_rows.sharers(conn, self._provider, self._silent_seconds))
            except CompactdError as problem:
                _log.warning("limits.sharers_unknown", code=problem.code)
        return self._count
