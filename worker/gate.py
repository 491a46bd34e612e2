"""Lets few jobs of the process think at once, while any number wait for their models.

A job that thinks holds a decoded history and asks the database step by step. When hundreds start together and each does
a step in turn, all their histories are in memory at once, the caches are cold at every step, and the queue for the
pool's connections grows longer than anybody waits. A few side by side are done sooner and take a tenth of the room.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

STARTING = 6  # jobs before their call: their statements overlap, so that the loop always has work
ENDING = 3  # jobs behind it: a commit must not wait for somebody's upload; together fewer than a pool's ten connections
PATIENCE_SECONDS = 0.25  # a place is lent for so long to a job that waits for the world: an upload, an empty hook chain


class Gate:
    """The places: some for jobs up to their call, some for jobs behind it."""

    def __init__(self, *, starting: int = STARTING, ending: int = ENDING) -> None:
        self._starting = asyncio.Semaphore(starting)
        self._ending = asyncio.Semaphore(ending)

    @asynccontextmanager
    async def seat(self) -> AsyncIterator[Seat]:
        """A place to start from, waited for; whichever place the job has at the end of the block is free then."""
        await self._starting.acquire()
        seat = Seat(self._starting, self._ending)
        try:
            yield seat
        finally:
            seat.leave()


class Seat:
    """One job's place: left while the job waits for the world, taken again among those that end."""

    def __init__(self, held: asyncio.Semaphore, ending: asyncio.Semaphore) -> None:
        self._held: asyncio.Semaphore | None = held
        self._ending = ending

    def leave(self) -> None:
        """Frees the place; does nothing when there is none."""
        held, self._held = self._held, None
        if held is not None:
            held.release()

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """For a block that waits for the world: it may leave, and must when it takes long; then a place is waited for.

        Who is cancelled while he waits has no place, and needs none to tell so.
        """
        timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self.leave)
        try:
            yield
        finally:
            timer.cancel()
            if self._held is None:
                await self._ending.acquire()
                self._held = self._ending
