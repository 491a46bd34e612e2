"""A summarizer that keeps to limits: a place before each call, and the truth about its cost afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.core import tokens
from compaction.core.messages import Usage
from compaction.core.rate_window import Rates, Spend
from compaction.errors import RateLimited
from compaction.ports import Progress, Summarizer, SummaryReply, SummaryRequest
from worker import metrics
from worker.limiter import Limiter

ESTIMATE_MARGIN = 1.2  # our estimate is off by 15 % (core.tokens); what was too much comes back with the answer


@dataclass(frozen=True, slots=True)
class LimitedSummarizer:
    """Implements ports.Summarizer over another one, for one tenant's jobs. Raises also errors.Throttled."""

    inner: Summarizer
    limiter: Limiter
    tenant: str

    @property
    def name(self) -> str:
        """The summarizer's name in settings and results."""
        return self.inner.name

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        """The model's answer, once there is a place for the call."""
        with metrics.LLM_WAIT.time():
            place = await self.limiter.enter(request.model, self.tenant, estimate(request, self.limiter.rates))
        actual: Spend | None = None
        pause_seconds = 0.0
        call = self.inner.summarize(request, progress)
        del request  # hundreds of calls wait here, and nothing of a transcript may wait with them
        try:
            reply = await call
            actual = cost(reply.usage)
        except RateLimited as error:
            pause_seconds = error.retry_after_seconds or 0.0
            raise
        finally:
            self.limiter.leave(place, actual, pause_seconds)
        return reply

    async def count_tokens(self, request: SummaryRequest) -> int | None:
        """The provider's count; it has limits of its own."""
        asking = self.inner.count_tokens(request)
        del request
        return await asking

    async def probe(self) -> None:
        """Whether the provider can be used."""
        await self.inner.probe()


def estimate(request: SummaryRequest, rates: Rates) -> Spend:
    """What the call will cost at most, as far as it matters: the size is only measured when it is limited."""
    size = 0
    if rates.input_tokens is not None:
        prompts = tokens.estimate_text(request.system_prompt) + tokens.estimate_text(request.user_prompt)
        overhead = tokens.estimate_overhead(request.session_system, request.session_tools)
        size = round(ESTIMATE_MARGIN * (prompts + overhead + tokens.estimate_messages(request.messages)))
    return Spend(1, size, request.max_output_tokens)


def cost(usage: Usage) -> Spend:
    """What the call has cost: what is read from a prompt cache does not count against the limits."""
    return Spend(1, usage.input_tokens + usage.cache_creation_input_tokens, usage.output_tokens)
