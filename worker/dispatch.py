"""The one door through which producers reach the workers: ring, and forget.

A ring that is lost costs seconds, never a job: the reconciler rings again for every row that nobody claimed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kombu.exceptions import OperationalError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from compaction import telemetry
from worker.app import KEY_PREFIX, QUEUE, TASK, WAKE_KEY, make_app

RING_SECONDS = 1.0  # an API answer never waits longer for Redis (facts/queue.md §3.2)
RING_THREADS = 4  # a ring takes half a millisecond: enough for thousands a second
EACH_SECONDS = 0.01  # of a batch: a ring takes half a millisecond

_log = telemetry.logger("doorbell")


class Doorbell:
    """Publishes job ids. One per process; safe to use from many tasks at once."""

    def __init__(self, redis_url: str) -> None:
        self._app = make_app(redis_url)
        limits = {"socket_timeout": RING_SECONDS, "socket_connect_timeout": RING_SECONDS}
        self._app.conf.broker_transport_options |= limits
        # Threads of its own: the loop's are for everybody, and a Redis that says nothing would hold them all.
        self._threads = ThreadPoolExecutor(RING_THREADS, thread_name_prefix="compactd-doorbell")
        self._patient = Redis.from_url(redis_url, socket_connect_timeout=RING_SECONDS)  # BLPOP ends by itself
        self._redis = Redis.from_url(redis_url, socket_timeout=RING_SECONDS, socket_connect_timeout=RING_SECONDS)

    async def ring(self, job_id: str) -> bool:
        """Rings for one job; False when Redis did not take it in time. Never raises."""
        return await self.ring_all((job_id,))

    async def ring_all(self, job_ids: Sequence[str]) -> bool:
        """Rings for the jobs in their order; False when Redis did not take them all in time. Never raises."""
        seconds = 2 * RING_SECONDS + EACH_SECONDS * len(job_ids)
        try:
            sending = asyncio.get_running_loop().run_in_executor(self._threads, self._send, job_ids)
            await asyncio.wait_for(sending, timeout=seconds)
        except (OperationalError, OSError, TimeoutError) as error:
            _log.warning("doorbell.lost", job_id=job_ids[0], jobs=len(job_ids), problem=type(error).__name__)
            return False
        return True

    async def wake(self) -> bool:
        """Tells the leader that jobs wait for which nobody rang; False when Redis took no notice. Never raises."""
        try:
            async with self._redis.pipeline(transaction=False) as pipeline:
                pipeline.lpush(WAKE_KEY, b"")
                pipeline.ltrim(WAKE_KEY, 0, 0)
                await pipeline.execute()
        except (RedisError, OSError, TimeoutError) as error:
            _log.warning("doorbell.away", problem=type(error).__name__)
            return False
        return True

    async def sleep(self, seconds: float) -> None:
        """Returns after `seconds`, or sooner when somebody wakes the leader. Never raises."""
        until = time.monotonic() + seconds
        try:
            await asyncio.wait_for(self._patient.blpop([WAKE_KEY], timeout=seconds), seconds + RING_SECONDS)
        except (RedisError, OSError, TimeoutError):
            await asyncio.sleep(max(0.0, until - time.monotonic()))

    async def depth(self) -> int | None:
        """How many rings lie in Redis that no worker has heard yet; None when Redis does not answer."""
        try:
            return await self._redis.llen(f"{KEY_PREFIX}{QUEUE}")
        except (RedisError, OSError, TimeoutError) as error:
            _log.warning("doorbell.away", problem=type(error).__name__)
            return None

    async def aclose(self) -> None:
        """Closes the connections to Redis."""
        await self._patient.aclose()
        await self._redis.aclose()
        await asyncio.get_running_loop().run_in_executor(self._threads, self._app.close)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _send(self, job_ids: Sequence[str]) -> None:
        with self._app.producer_or_acquire() as producer:
            for job_id in job_ids:
                self._app.send_task(TASK, args=(job_id,), queue=QUEUE, retry=False, producer=producer)
