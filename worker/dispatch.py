"""The one door through which producers reach the workers: ring, and forget.

A ring that is lost costs seconds, never a job: the reconciler rings again for every row that nobody claimed.
"""

from __future__ import annotations

import asyncio

from kombu.exceptions import OperationalError

from compaction import telemetry
from worker.app import QUEUE, TASK, make_app

RING_SECONDS = 1.0  # an API answer never waits longer for Redis (facts/queue.md §3.2)

_log = telemetry.logger("doorbell")


class Doorbell:
    """Publishes job ids. One per process; safe to use from many tasks at once."""

    def __init__(self, redis_url: str) -> None:
        self._app = make_app(redis_url)
        limits = {"socket_timeout": RING_SECONDS, "socket_connect_timeout": RING_SECONDS}
        self._app.conf.broker_transport_options |= limits

    async def ring(self, job_id: str) -> bool:
        """Rings for one job; False when Redis did not take it in time. Never raises."""
        try:
            await asyncio.wait_for(asyncio.to_thread(self._send, job_id), timeout=2 * RING_SECONDS)
        except (OperationalError, OSError, TimeoutError) as error:
            _log.warning("doorbell.lost", job_id=job_id, problem=type(error).__name__)
            return False
        return True

    async def aclose(self) -> None:
        """Closes the connections to Redis."""
        await asyncio.to_thread(self._app.close)

    def _send(self, job_id: str) -> None:
        self._app.send_task(TASK, args=(job_id,), queue=QUEUE, retry=False)
