"""A summary without a model: honest, local, free, and marked as degraded (docs/decisions/0004)."""

from __future__ import annotations

import asyncio

from compaction.core.messages import Usage
from compaction.ports import Progress, SummaryReply, SummaryRequest
from compaction.summarizers.extraction.sections import Ending, budget_chars, conversation_of, summary_text
from compaction.summarizers.extraction.sizes import exceeds

NAME = "extractive"
THREAD_CHARS = 100_000  # of content; from this on the work takes tens of milliseconds and must not stop the event loop


class ExtractiveSummarizer:
    """Builds the nine sections from the transcript alone. Implements ports.Summarizer; never fails on odd content."""

    @property
    def name(self) -> str:
        """The summarizer's name in settings and results."""
        return NAME

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        """The extract, in <summary> tags as a model would answer. Costs no tokens, follows no instructions."""
        if exceeds(request.messages, THREAD_CHARS):
            text = await asyncio.to_thread(extract, request)
        else:
            text = extract(request)
        progress.characters(len(text))
        return SummaryReply(
            text=text, stop_reason="end_turn", usage=Usage(), model=NAME, block_types=("text",), degraded=True
        )

    async def count_tokens(self, request: SummaryRequest) -> int | None:
        """None: there is no provider to ask."""
        del request
        return None

    async def probe(self) -> None:
        """Always works: there is nobody to be down."""


def extract(request: SummaryRequest, *, ending: Ending = "next_step") -> str:
    """The whole reply text for a request: pure, bounded by the request's output cap, valid UTF-8."""
    source = conversation_of(request.messages, request.prior_summary)
    body = summary_text(
        source,
        budget_chars=budget_chars(source, request.max_output_tokens),
        instructions=request.instructions,
        ending=ending,
    )
    return f"<summary>\n{body}\n</summary>"
