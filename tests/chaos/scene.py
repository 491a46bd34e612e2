"""What a fault has to work with: the service, its producer, the dice, and the moments it can wait for."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from tests.chaos.arena import Arena
from tests.chaos.producer import Producer
from tests.chaos.proxy import Link, Proxy, When
from tests.chaos.slots import Slot, wait
from worker.dispatch import Doorbell

MOMENT_SECONDS = 12.0  # a job reaches any moment of its life within a second or two of a free worker
MORE_JOBS = 6  # ordered when a fault waits for a moment that does not come


class Missed(Exception):
    """The moment did not come; nothing was injected."""


@dataclass(frozen=True, slots=True)
class Later:
    """A fault that goes on while others follow; `end` is called after so many seconds."""

    seconds: float
    end: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Scene:
    """`long_seconds`: how long an outage of the broker lasts."""

    arena: Arena
    producer: Producer
    rng: random.Random
    long_seconds: float

    @property
    def free_workers(self) -> list[Slot]:
        """Workers that no fault holds in its hands."""
        return [worker for worker in self.arena.workers if not worker.is_held]

    def busy_worker(self) -> Slot:
        """A worker that waits for the model now; the busiest of them."""
        self._until(lambda: any(worker.busy_calls for worker in self.free_workers))
        return max(self.free_workers, key=lambda worker: worker.busy_calls)

    def any_worker(self) -> Slot:
        """A worker that takes work."""
        self._until(lambda: any(worker.is_ready for worker in self.free_workers))
        return self.rng.choice([worker for worker in self.free_workers if worker.is_ready])

    def catch(self, needle: bytes, act: Callable[[Slot, Link], object], *, when: When = "before") -> None:
        """Acts once, in the worker whose next statement holds the needle."""
        caught = threading.Event()

        def sprung(worker: Slot, link: Link) -> object:
            if caught.is_set():
                return False
            caught.set()
            return act(worker, link)

        workers = self.free_workers
        traps = [worker.postgres.set_trap(needle, partial(sprung, worker), when=when) for worker in workers]
        try:
            self._until(caught.is_set)
        finally:
            for worker, trap in zip(workers, traps, strict=True):
                worker.postgres.remove_trap(trap)

    def catch_at(self, proxy: Proxy, needle: bytes, act: Callable[[Link], object], *, when: When) -> None:
        """Acts once, when the needle crosses this wire."""
        trap = proxy.set_trap(needle, act, when=when)
        try:
            self._until(trap.sprung.is_set)
        finally:
            proxy.remove_trap(trap)

    def ring(self, job_ids: Iterable[str]) -> None:
        """Publishes the ids as any producer could, in this order."""

        async def all_of_them() -> None:
            doorbell = Doorbell(self.arena.valkey.url())
            for job_id in job_ids:
                await doorbell.ring(job_id)
            await doorbell.aclose()

        asyncio.run(all_of_them())

    def live_jobs(self) -> list[str]:
        """Ids of the jobs that have not ended."""
        return [row[0] for row in self.arena.rows("SELECT id::text FROM jobs WHERE ended_at IS NULL")]

    def _until(self, look: Callable[[], bool]) -> None:
        for _ in range(3):
            if wait(look, MOMENT_SECONDS / 3):
                return
            self.producer.order(MORE_JOBS)
        raise Missed
