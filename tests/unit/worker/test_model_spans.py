"""A model call is a span with counts and codes, and with nothing that was said."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from compaction import tracing
from compaction.core.messages import Message, Usage
from compaction.errors import RateLimited
from compaction.ports import Progress, SummaryReply, SummaryRequest
from tests.unit.fakes import ScriptedSummarizer, summary_reply
from worker.model_spans import TracedSummarizer

pytestmark = pytest.mark.anyio
SAID = "the-secret-of-the-transcript"


class Deaf:
    """Progress that nobody hears."""

    def characters(self, count: int) -> None:
        """Nothing to do."""


class Broken(ScriptedSummarizer):
    """Fails with a text that quotes what it was given."""

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        """Raises."""
        raise RateLimited(f"no room for {request.user_prompt}")


class Faulty(ScriptedSummarizer):
    """Fails with an exception that is none of ours."""

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        """Raises."""
        raise KeyError(request.user_prompt)


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    """The spans that were finished during the test."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing.use(provider)
    yield exporter
    tracing.close()


def request() -> SummaryRequest:
    """A request whose every text is private."""
    return SummaryRequest(
        kind="fresh",
        model="claude-haiku-4-5",
        messages=[Message(role="user", content=SAID)],
        system_prompt=SAID,
        user_prompt=SAID,
        max_output_tokens=20_000,
    )


async def test_a_call_tells_model_usage_and_why_it_stopped(exported: InMemorySpanExporter) -> None:
    reply = summary_reply()
    await TracedSummarizer(ScriptedSummarizer([reply])).summarize(request(), Deaf())

    (span,) = exported.get_finished_spans()
    assert (span.name, span.kind, span.status.status_code) == (
        "chat claude-haiku-4-5",
        SpanKind.CLIENT,
        StatusCode.UNSET,
    )
    told = dict(span.attributes or {})
    usage: Usage = reply.usage
    assert told["gen_ai.usage.input_tokens"] == usage.input_tokens
    assert told["gen_ai.usage.output_tokens"] == usage.output_tokens
    assert told["gen_ai.response.finish_reasons"] == (reply.stop_reason,)
    assert told["compactd.request.messages"] == 1
    assert SAID not in span.to_json()
    assert reply.text not in span.to_json()


@pytest.mark.parametrize(("model", "code"), [(Broken, "rate_limited"), (Faulty, "KeyError")])
async def test_a_failed_call_tells_its_code_and_never_its_text(
    exported: InMemorySpanExporter, model: type[ScriptedSummarizer], code: str
) -> None:
    with pytest.raises((RateLimited, KeyError)):
        await TracedSummarizer(model()).summarize(request(), Deaf())

    (span,) = exported.get_finished_spans()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, code)
    assert dict(span.attributes or {})["error.type"] == code
    assert SAID not in span.to_json()
    assert span.events == ()


async def test_where_nothing_is_recorded_a_call_costs_no_span() -> None:
    reply = summary_reply()

    assert await TracedSummarizer(ScriptedSummarizer([reply])).summarize(request(), Deaf()) is reply
    assert tracing.current_traceparent() is None
