"""Ends a call that is silent or takes too long. Costs one assignment per event, not one timer.

The SDK's read timeout is per socket read, so a stream that pings never times out (facts/anthropic.md §1). One timer per
call looks now and then whether anything came; only the cancellation scope of asyncio is used to stop.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long a call may take. All in seconds."""

    total_seconds: float = 600.0  # the SDK's own default for a whole call
    idle_seconds: float = 90.0  # between two events; the API pings every few seconds
    first_event_seconds: float | None = None  # None: twice idle_seconds; a million tokens are read for minutes
    connect_seconds: float = 10.0  # DNS, TCP and TLS; the SDK allows 5, too little behind a busy proxy
    ending_seconds: float = 1.0  # after the final event, for the end of the HTTP body: the connection is used again

    @property
    def start_seconds(self) -> float:
        """How long the first event may take."""
        return 2 * self.idle_seconds if self.first_event_seconds is None else self.first_event_seconds


class Watchdog:
    """`async with Watchdog(deadlines) as dog:` raises TimeoutError inside; `expired` then says why."""

    def __init__(self, deadlines: Deadlines) -> None:
        self.expired: Literal["total", "silent"] | None = None
        self._deadlines = deadlines
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + deadlines.total_seconds
        self._allowed = deadlines.start_seconds
        self._alive = self._loop.time()
        self._scope = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def allowed_seconds(self) -> float:
        """How much silence is allowed at the moment."""
        return self._allowed

    def seen(self) -> float:
        """Something came or went. The loop's time, in seconds."""
        self._alive = self._loop.time()
        return self._alive

    def allow(self, seconds: float) -> None:
        """From now on so much silence is allowed."""
        if seconds != self._allowed:
            self._allowed = seconds
            self._alive = self._loop.time()
            self._arm()

    async def __aenter__(self) -> Self:
        await self._scope.__aenter__()
        self._arm()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._scope.__aexit__(kind, error, trace)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(min(self._end, self._alive + self._allowed), self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if now >= self._end:
            self.expired = "total"
        elif now - self._alive >= self._allowed:
            self.expired = "silent"
        else:
            self._arm()
            return
        self._scope.reschedule(now)
