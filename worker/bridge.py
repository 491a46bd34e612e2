"""The process's one asyncio loop, in a thread of its own; Celery's threads hand it coroutines and wait.

A slot on this bridge costs 0.2 MB where a prefork child costs 70; cancellation and deadlines are exact
(facts/queue.md §4).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from compaction import telemetry

T = TypeVar("T")
Closing = Callable[[], Coroutine[Any, Any, None]]  # closes one thing on the loop

BEACON_SECONDS = 0.5  # how often the loop says that it turns
STOP_SECONDS = 10.0  # for what runs on it to end; far below the goodbye of `worker.drain`
CLOSE_SECONDS = 2.0  # for a server to take leave of a connection

_log = telemetry.logger("bridge")


class Bridge:
    """Runs coroutines of other threads on one loop and knows how late the loop is."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="compactd-loop", daemon=True)
        self._seen = time.monotonic()

    def start(self) -> None:
        """Starts the loop's thread and its beacon."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._beacon(), self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, run on the loop; the calling thread waits. Raises what `work` raises."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def spawn(self, work: Coroutine[Any, Any, object]) -> None:
        """Starts `work` on the loop and does not wait for it."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def lag_seconds(self) -> float:
        """How much later than planned the loop turned last; grows while it is stuck."""
        return max(0.0, time.monotonic() - self._seen - BEACON_SECONDS)

    def stop(self, *last: Closing) -> None:
        """Ends the loop: what still runs on it is cancelled, then `last` closes one after the other. Never raises."""
        try:
            asyncio.run_coroutine_threadsafe(_end(last), self._loop).result(timeout=STOP_SECONDS)
        except TimeoutError:
            _log.warning("bridge.stuck", seconds=STOP_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=STOP_SECONDS)
        if not self._thread.is_alive():  # a loop that a job blocks cannot be closed; the process ends without it
            self._loop.close()

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _beacon(self) -> None:
        while True:
            self._seen = time.monotonic()
            await asyncio.sleep(BEACON_SECONDS)


async def _end(last: Sequence[Closing]) -> None:
    await _cancel_all()
    for close in last:
        try:
            await asyncio.wait_for(close(), CLOSE_SECONDS)
        except Exception as error:  # noqa: BLE001 - what cannot be closed must not keep the others open
            _log.warning("bridge.not_closed", **telemetry.failure(error))
    await asyncio.get_running_loop().shutdown_asyncgens()


async def _cancel_all() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
