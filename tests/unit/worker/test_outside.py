"""Ports that free a job's place while they wait."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from compaction.ports import HookContext, PreCompactAnswer, Progress, SessionStartAnswer, SummaryReply, SummaryRequest
from compaction.task import Ports
from tests.unit.fakes import MemoryHistory, MemoryRecorder, ScriptedHooks, ScriptedSummarizer, flat_price, summary_reply
from worker.gate import Gate
from worker.outside import waiting_outside

pytestmark = pytest.mark.anyio

REQUEST = SummaryRequest(kind="fresh", model="m", messages=(), system_prompt="s", user_prompt="u", max_output_tokens=1)
CONTEXT = HookContext(tenant="t", session_id="s", job_id="j", trigger="manual", instructions=None, pre_tokens=1)


@dataclass(slots=True)
class SlowModel(ScriptedSummarizer):
    """Sends its request when told to, answers when told to."""

    sent: asyncio.Event = field(default_factory=asyncio.Event)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    probes: int = 0

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        """Both steps."""
        del request
        await self.sent.wait()
        progress.characters(0)
        await self.answered.wait()
        progress.characters(5)
        return summary_reply()

    async def probe(self) -> None:
        """Counts it."""
        self.probes += 1


@dataclass(slots=True)
class Heard:
    """Progress that is kept."""

    counts: list[int] = field(default_factory=list)

    def characters(self, count: int) -> None:
        """Kept."""
        self.counts.append(count)


def ports(model: SlowModel, hooks: ScriptedHooks | None = None) -> Ports:
    """Ports with this model."""
    return Ports(
        history=MemoryHistory(()),
        summarizer=model,
        extractive=model,
        recorder=MemoryRecorder(),
        hooks=hooks or ScriptedHooks(),
        price=flat_price,
    )


async def is_free(gate: Gate) -> bool:
    """Whether somebody else can start now."""
    started: list[bool] = []

    async def start() -> None:
        async with gate.seat():
            started.append(True)

    waiting = asyncio.create_task(start())
    for _ in range(5):
        await asyncio.sleep(0)
    waiting.cancel()
    return bool(started)


async def test_a_call_frees_the_place_when_its_request_has_gone_out_and_not_before() -> None:
    gate, model, heard = Gate(starting=1, ending=1), SlowModel(), Heard()
    async with gate.seat() as seat, asyncio.TaskGroup() as group:
        summarizer = waiting_outside(ports(model), seat).summarizer
        call = group.create_task(summarizer.summarize(REQUEST, heard))
        assert not await is_free(gate)
        model.sent.set()
        await asyncio.sleep(0)
        assert await is_free(gate)
        model.answered.set()
        assert await call == summary_reply()
    assert heard.counts == [0, 5]


async def test_the_rest_of_the_port_is_passed_on() -> None:
    model = SlowModel(counted_tokens=7)
    async with Gate().seat() as seat:
        summarizer = waiting_outside(ports(model), seat).summarizer
        assert summarizer.name == "scripted"
        assert await summarizer.count_tokens(REQUEST) == 7
        await summarizer.probe()
    assert model.probes == 1


async def test_hooks_answer_as_they_did() -> None:
    hooks = ScriptedHooks(before=PreCompactAnswer(instructions="be brief"), after=SessionStartAnswer())
    async with Gate().seat() as seat:
        outside = waiting_outside(ports(SlowModel(), hooks), seat).hooks
        assert (await outside.pre_compact(CONTEXT)).instructions == "be brief"
        assert await outside.session_start(CONTEXT) == SessionStartAnswer()
