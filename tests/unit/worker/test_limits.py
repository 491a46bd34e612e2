"""What a call is estimated to cost, what it did cost, and that a place is always left."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from compaction.core.messages import Message, Usage
from compaction.core.rate_window import Rates, Spend
from compaction.errors import Overloaded, ProviderError, RateLimited
from compaction.ports import SummaryReply, SummaryRequest
from tests.unit.fakes import ScriptedSummarizer, summary_reply
from worker import limits
from worker.limits import LimitedSummarizer

pytestmark = pytest.mark.anyio

REQUEST = SummaryRequest(
    kind="fresh",
    model="claude-haiku-4-5",
    messages=(Message(role="user", content="a" * 4_000),),
    system_prompt="s" * 400,
    user_prompt="u" * 400,
    max_output_tokens=20_000,
)


class Deaf:
    """Hears no progress."""

    def characters(self, count: int) -> None:
        del count


@dataclass
class OpenLimiter:
    """Grants every place and remembers how each was left."""

    rates: Rates = field(default_factory=lambda: Rates(input_tokens=10**6))
    entered: list[tuple[str, str, Spend]] = field(default_factory=list)
    left: list[tuple[Spend | None, float]] = field(default_factory=list)

    async def enter(self, model: str, tenant: str, spend: Spend) -> str:
        self.entered.append((model, tenant, spend))
        return "place"

    def leave(self, place: str, actual: Spend | None, pause_seconds: float = 0.0) -> None:
        assert place == "place"
        self.left.append((actual, pause_seconds))


def limited(inner: Any, limiter: OpenLimiter) -> LimitedSummarizer:  # noqa: ANN401 - a fake summarizer
    fake: Any = limiter
    return LimitedSummarizer(inner, fake, "tenant-a")


def test_the_estimate_is_a_fifth_above_ours_and_reserves_the_whole_output() -> None:
    """Prose is four letters a token: 1,004 for the message, 100 for each prompt, times 1.2."""
    assert limits.estimate(REQUEST, Rates(input_tokens=1)) == Spend(1, 1_445, 20_000)


def test_the_size_is_not_measured_when_it_is_not_limited() -> None:
    assert limits.estimate(REQUEST, Rates(requests=1)) == Spend(1, 0, 20_000)


def test_what_is_read_from_a_prompt_cache_costs_nothing() -> None:
    usage = Usage(100, 50, cache_read_input_tokens=90_000, cache_creation_input_tokens=7)
    assert limits.cost(usage) == Spend(1, 107, 50)


async def test_an_answered_call_leaves_with_what_it_cost() -> None:
    limiter = OpenLimiter()
    reply = await limited(ScriptedSummarizer(), limiter).summarize(REQUEST, Deaf())
    assert reply.text == summary_reply().text
    assert limiter.entered == [("claude-haiku-4-5", "tenant-a", Spend(1, 1_445, 20_000))]
    assert limiter.left == [(Spend(1, 40_000, 900), 0.0)]


@pytest.mark.parametrize(
    ("error", "pause_seconds"),
    [(RateLimited(retry_after_seconds=7), 7.0), (RateLimited(), 0.0), (Overloaded(retry_after_seconds=7), 0.0)],
)
async def test_a_refused_call_leaves_with_its_estimate_and_the_pause_it_was_told(
    error: ProviderError, pause_seconds: float
) -> None:
    limiter = OpenLimiter()
    with pytest.raises(ProviderError):
        await limited(ScriptedSummarizer([error]), limiter).summarize(REQUEST, Deaf())
    assert limiter.left == [(None, pause_seconds)]


async def test_a_cancelled_call_leaves_its_place() -> None:
    class Silent(ScriptedSummarizer):
        async def summarize(self, request: SummaryRequest, progress: Any) -> SummaryReply:  # noqa: ANN401 - unused
            await asyncio.sleep(60)
            raise AssertionError

    limiter = OpenLimiter()
    task = asyncio.create_task(limited(Silent(), limiter).summarize(REQUEST, Deaf()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert limiter.left == [(None, 0.0)]


async def test_counting_and_probing_take_no_place() -> None:
    limiter = OpenLimiter()
    summarizer = limited(ScriptedSummarizer(counted_tokens=5), limiter)
    assert await summarizer.count_tokens(REQUEST) == 5
    await summarizer.probe()
    assert (summarizer.name, limiter.entered) == ("scripted", [])
