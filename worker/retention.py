"""What is old is deleted, a batch at a time, so that nobody waits for it."""

from __future__ import annotations

from compaction import telemetry
from compaction.core.webhooks import MAX_ENDPOINTS
from compaction.store import delivery_log, retention
from compaction.store.engine import Database
from compaction.store.retention import DAY_SECONDS, FIRST_ID

BATCH = 500  # jobs looked at; some tens of milliseconds with their events and results
DELIVERIES = BATCH * MAX_ENDPOINTS  # as many as those jobs can have written; they are small and hang on nothing
SESSIONS = 50  # of inline jobs: with 10,000 messages each, a delete of a few seconds
BATCH_SECONDS = 1.0  # between two batches of a pass: 1.8 million jobs an hour
PASS_SECONDS = 3_600.0  # between two passes

_log = telemetry.logger("retention")


class Retention:
    """Walks through what has ended. `None` days keep a kind of rows for ever."""

    def __init__(self, database: Database, *, job_days: float | None, idempotency_days: float | None) -> None:
        self._database = database
        self._job_days = job_days
        self._idempotency_days = idempotency_days
        self._after_id = FIRST_ID
        self._deleted = 0
        self._swept = 0

    async def step(self) -> float:
        """One batch of each; after how many seconds the next one is due."""
        keys = await self._prune_keys()
        more = await self._prune_jobs()
        if await self._prune_sessions() or more or keys == BATCH:
            return BATCH_SECONDS
        if self._deleted or self._swept:
            _log.info("retention.pruned", jobs=self._deleted, inline_sessions=self._swept)
        self._deleted = self._swept = 0
        return PASS_SECONDS

    async def _prune_jobs(self) -> bool:
        if self._job_days is None:
            return False
        async with self._database.begin() as conn:
            pruned = await retention.prune_jobs(conn, self._job_days * DAY_SECONDS, BATCH, self._after_id)
            news = await delivery_log.prune(conn, self._job_days * DAY_SECONDS, DELIVERIES)
        self._deleted += pruned.deleted
        self._after_id = pruned.after_id or FIRST_ID
        return pruned.after_id is not None or news == DELIVERIES

    async def _prune_sessions(self) -> bool:
        """What inline jobs brought along is kept as long as the jobs."""
        if self._job_days is None:
            return False
        async with self._database.begin() as conn:
            swept = await retention.prune_ephemeral_sessions(conn, self._job_days * DAY_SECONDS, SESSIONS)
        self._swept += swept
        return swept == SESSIONS

    async def _prune_keys(self) -> int:
        if self._idempotency_days is None:
            return 0
        async with self._database.begin() as conn:
            return await retention.prune_idempotency_keys(conn, self._idempotency_days * DAY_SECONDS, BATCH)
