"""News of jobs: a commit that changes a job sends its id, and one connection per process hears for all who wait.

A lost connection loses news; whoever waits is then woken to look for himself, so a waiter needs no polling.
An enqueue sends none: nobody can wait for a job that is not there yet, and commits that notify stand in one line.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import psycopg
from sqlalchemy import exc

from compaction.errors import CompactdError
from compaction.store.engine import Database

CHANNEL = "compactd_jobs"
PROBE_SECONDS = 30.0  # how soon a connection that died without a word is noticed
RECONNECT_SECONDS = 1.0  # between two tries to get the connection back


class Watch:
    """One waiter's ear for one job."""

    def __init__(self) -> None:
        self._news = asyncio.Event()

    def ring(self) -> None:
        """Something has changed, or may have."""
        self._news.set()

    async def wait(self, timeout_seconds: float) -> bool:
        """Whether news came within the time. News since the last wait counts: it is never missed between two waits."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True


class JobListener:
    """Hears the changes of all jobs over one connection; any number may wait. Use as an async context."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watches: dict[str, set[Watch]] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def start(self) -> None:
        """Begins to listen, in a task of the running loop; does nothing if it listens already."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen(), name="job listener")

    async def close(self) -> None:
        """Stops listening; whoever waits is woken."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        self._ring_all()

    @contextmanager
    def watch(self, job_id: str) -> Iterator[Watch]:
        """An ear for the job's changes. Open it first, then read the job, then wait: so no change slips through."""
        watch = Watch()
        watches = self._watches.setdefault(job_id, set())
        watches.add(watch)
        self.start()
        try:
            yield watch
        finally:
            watches.discard(watch)
            if not watches:
                self._watches.pop(job_id, None)

    async def wait(self, job_id: str, timeout_seconds: float) -> bool:
        """Whether the job changed within the time, from now on. Prefer `watch` where the job is read before."""
        with self.watch(job_id) as watch:
            return await watch.wait(timeout_seconds)

    async def _listen(self) -> None:
        while True:
            try:
                async with self._database.dedicated() as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    self._ring_all()
                    async for job_id in _news(connection):
                        for watch in self._watches.get(job_id, ()):
                            watch.ring()
            except (psycopg.Error, exc.SQLAlchemyError, CompactdError, OSError):
                self._ring_all()
                await asyncio.sleep(RECONNECT_SECONDS)

    def _ring_all(self) -> None:
        for watches in self._watches.values():
            for watch in watches:
                watch.ring()


async def _news(connection: psycopg.AsyncConnection[Any]) -> AsyncIterator[str]:
    """The ids that are sent, for ever; a silent connection is probed. Raises psycopg.Error when it is gone."""
    while True:
        async for news in connection.notifies(timeout=PROBE_SECONDS):
            yield news.payload
        await connection.execute("SELECT 1")
