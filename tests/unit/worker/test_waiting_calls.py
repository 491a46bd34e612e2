"""Hundreds of calls wait at once: none of the wrappers around a summarizer may hold a transcript meanwhile."""

from __future__ import annotations

import asyncio
import weakref
from dataclasses import dataclass, field
from typing import Any

import pytest

from compaction.core.messages import Message
from compaction.core.rate_window import Rates
from compaction.ports import Progress, Summarizer, SummaryReply, SummaryRequest
from compaction.task import Ports
from tests.unit.fakes import MemoryHistory, MemoryRecorder, ScriptedHooks, ScriptedSummarizer, flat_price, summary_reply
from worker.gate import Gate, Seat
from worker.limits import LimitedSummarizer
from worker.model_spans import TracedSummarizer
from worker.outside import waiting_outside
from worker.provider import _WatchedSummarizer

pytestmark = pytest.mark.anyio


class Transcript(list[Message]):
    """Messages that tell, through a weak reference, whether anybody still holds them."""


@dataclass(slots=True)
class WaitingModel(ScriptedSummarizer):
    """Reads its request and then waits, as a real call does."""

    answered: asyncio.Event = field(default_factory=asyncio.Event)

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        """Waits for `answered`."""
        del request, progress
        await self.answered.wait()
        return summary_reply()

    async def count_tokens(self, request: SummaryRequest) -> int | None:
        """Waits for `answered`."""
        del request
        await self.answered.wait()
        return 1


class Anybody:
    """Stands for the provider and for the limiter, and lets everybody through."""

    rates = Rates(None, None, None)

    async def answered(self, *, on_trial: bool) -> None:
        """Nothing to do."""

    async def enter(self, *_: Any) -> str:  # noqa: ANN401 - whatever is asked for
        """A place."""
        return "place"

    def leave(self, *_: Any) -> None:  # noqa: ANN401 - whatever it cost
        """Nothing to do."""


class Deaf:
    """Progress that nobody hears."""

    def characters(self, count: int) -> None:
        """Nothing to do."""


def wrapped(model: WaitingModel, seat: Seat) -> Summarizer:
    """The model as a job sees it: traced, watched, limited, outside of its seat."""
    anybody: Any = Anybody()
    ports = Ports(
        history=MemoryHistory(()),
        summarizer=LimitedSummarizer(
            _WatchedSummarizer(TracedSummarizer(model), anybody, on_trial=False), anybody, "tenant"
        ),
        extractive=model,
        recorder=MemoryRecorder(),
        hooks=ScriptedHooks(),
        price=flat_price,
    )
    return waiting_outside(ports, seat).summarizer


@pytest.mark.parametrize("asked", ["summarize", "count_tokens"])
async def test_a_call_that_waits_holds_no_transcript(asked: str) -> None:
    """The caller lets go of its request; then nobody has it, though the answer is still to come."""
    model = WaitingModel()
    async with Gate().seat() as seat:
        summarizer = wrapped(model, seat)
        messages = Transcript([Message(role="user", content="private")])
        watched = weakref.ref(messages)
        request = SummaryRequest(
            kind="fresh", model="m", messages=messages, system_prompt="s", user_prompt="u", max_output_tokens=1
        )
        call = summarizer.summarize(request, Deaf()) if asked == "summarize" else summarizer.count_tokens(request)
        waiting = asyncio.ensure_future(call)
        del request, messages, call
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        assert watched() is None
        model.answered.set()
        assert await waiting
