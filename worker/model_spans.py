"""A summarizer whose calls are spans, named as OpenTelemetry's conventions for generative models have it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from compaction import tracing
from compaction.ports import Progress, Summarizer, SummaryReply, SummaryRequest
from compaction.tracing import OpenSpan

PROVIDER = "anthropic"  # the conventions' word for it


@dataclass(frozen=True, slots=True)
class TracedSummarizer:
    """Implements ports.Summarizer over another one that calls a model."""

    inner: Summarizer

    @property
    def name(self) -> str:
        """The summarizer's name in settings and results."""
        return self.inner.name

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        """The model's answer."""
        with _call("chat", request) as opened:
            call = self.inner.summarize(request, progress)
            del request  # hundreds of calls wait here, and nothing of a transcript may wait with them
            reply = await call
            opened.tell(_told(reply))
        return reply

    async def count_tokens(self, request: SummaryRequest) -> int | None:
        """The provider's count."""
        with _call("count_tokens", request) as opened:
            asking = self.inner.count_tokens(request)
            del request
            counted = await asking
            opened.tell({"gen_ai.usage.input_tokens": counted})
        return counted

    async def probe(self) -> None:
        """Whether the provider can be used."""
        await self.inner.probe()


@contextmanager
def _call(operation: str, request: SummaryRequest) -> Iterator[OpenSpan]:
    facts: dict[str, tracing.Fact | None] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.request.model": request.model,
        "gen_ai.request.max_tokens": request.max_output_tokens,
        "compactd.request.kind": request.kind,
        "compactd.request.messages": len(request.messages),
    }
    name = f"{operation} {request.model}"
    del request
    with tracing.span(name, "client", facts) as opened:
        yield opened


def _told(reply: SummaryReply) -> tracing.Facts:
    usage = reply.usage
    return {
        "gen_ai.response.model": reply.model,
        "gen_ai.response.finish_reasons": None if reply.stop_reason is None else (reply.stop_reason,),
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_input_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_input_tokens,
        "compactd.provider_request_id": reply.request_id,
    }
