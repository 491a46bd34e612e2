"""Ports that wait for the world: while they do, the job's place at the gate is somebody else's."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compaction.ports import (
    HookContext,
    Hooks,
    PreCompactAnswer,
    Progress,
    SessionStartAnswer,
    Summarizer,
    SummaryReply,
    SummaryRequest,
)
from compaction.task import Ports
from worker.gate import Seat


def waiting_outside(ports: Ports, seat: Seat) -> Ports:
    """The same ports, but whoever waits for a model or a hook leaves the seat meanwhile."""
    return replace(ports, summarizer=_OutsideSummarizer(ports.summarizer, seat), hooks=_OutsideHooks(ports.hooks, seat))


@dataclass(frozen=True, slots=True)
class _OutsideSummarizer:
    """Implements ports.Summarizer over another one: a request is built and sent in the seat, and answered outside."""

    inner: Summarizer
    seat: Seat

    @property
    def name(self) -> str:
        return self.inner.name

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        call = self.inner.summarize(request, _Leaving(progress, self.seat))
        del request  # hundreds of calls wait here, and nothing of a transcript may wait with them
        async with self.seat.waiting():
            return await call

    async def count_tokens(self, request: SummaryRequest) -> int | None:
        asking = self.inner.count_tokens(request)
        del request
        async with self.seat.waiting():
            return await asking

    async def probe(self) -> None:
        await self.inner.probe()


@dataclass(frozen=True, slots=True)
class _Leaving:
    """Progress whose first news, that nothing has arrived yet, says that the request has gone out."""

    inner: Progress
    seat: Seat

    def characters(self, count: int) -> None:
        self.seat.leave()
        self.inner.characters(count)


@dataclass(frozen=True, slots=True)
class _OutsideHooks:
    """Implements ports.Hooks over others."""

    inner: Hooks
    seat: Seat

    async def pre_compact(self, context: HookContext) -> PreCompactAnswer:
        async with self.seat.waiting():
            return await self.inner.pre_compact(context)

    async def session_start(self, context: HookContext) -> SessionStartAnswer:
        async with self.seat.waiting():
            return await self.inner.session_start(context)
