"""The doorbell keeps to itself."""

from __future__ import annotations

import asyncio
import threading

import pytest

from worker.dispatch import RING_THREADS, Doorbell

pytestmark = pytest.mark.anyio


class StuckDoorbell(Doorbell):
    """Its Redis says nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__("redis://127.0.0.1:9/0")
        self.let_go = threading.Event()
        self.stuck = threading.Semaphore(0)

    def _send(self, job_ids: object) -> None:
        del job_ids
        self.stuck.release()
        self.let_go.wait()


async def test_a_redis_that_says_nothing_holds_the_doorbells_threads_and_no_others() -> None:
    bell = StuckDoorbell()
    rings = [asyncio.create_task(bell.ring("job")) for _ in range(100)]  # more than the loop's own threads
    for _ in range(RING_THREADS):
        await asyncio.to_thread(bell.stuck.acquire)  # a thread of everybody's, while the doorbell has all of its own
    bell.let_go.set()
    assert all(await asyncio.gather(*rings))
    await bell.aclose()
