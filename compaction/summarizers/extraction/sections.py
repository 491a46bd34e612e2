"""The nine sections of DESIGN §3, filled from a timeline and fitted to a budget of characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compaction.core.messages import Message
from compaction.core.sections import TITLES, UP_TO_TITLES
from compaction.summarizers.extraction import concepts, failures, files, quotes, reports, requests, todos, work
from compaction.summarizers.extraction.excerpts import clean
from compaction.summarizers.extraction.items import Item, fit, needed_chars
from compaction.summarizers.extraction.prior import Prior, prior_from, prior_message, text_of
from compaction.summarizers.extraction.timeline import Timeline, timeline_of

Ending = Literal["next_step", "continuing"]  # what the last two sections tell; the second one is for a prefix

_SHARES = (0.14, 0.04, 0.20, 0.12, 0.14, 0.20, 0.05, 0.08, 0.03)  # of the budget, by section; what one spares goes on
_LEAST = {9: 200, 8: 400, 1: 400}  # what these get first of what is spare: a share of a small budget is no use to them
_HEIRS = (6, 1, 3, 4, 8, 5, 7, 9, 2)  # who gets what others spare, first come first served
NOTICE = "Extracted from the transcript without a model: quotes are verbatim, nothing was interpreted."
CARRIED = " Entries of the earlier summary were carried over."
EMPTY = "- None."

CHARS_PER_TOKEN = 3  # a little above the 2.74 measured on agent sessions: Markdown prose is lighter than code
MAX_CHARS = 36_000  # half again the longest model-made summary seen (24,528): an extract is less dense
MAX_SHARE_OF_INPUT = 0.5  # an extract that is not clearly smaller than the history is not worth having
MIN_CHARS = 1_500  # nine headings and a line or two each


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a summary is made from: the new steps and the facts of an earlier summary."""

    timeline: Timeline
    prior: Prior
    prior_characters: int = 0

    @property
    def characters(self) -> int:
        """The size of all that the summary replaces."""
        return self.timeline.characters + self.prior_characters


def conversation_of(messages: Sequence[Message], prior_summary: str | None) -> Conversation:
    """The messages taken apart once; an earlier summary among them becomes `prior`."""
    holder = prior_message(messages, prior_summary)
    text = (prior_summary or text_of(holder)) if holder else (prior_summary or "")
    return Conversation(timeline_of(messages, holder), prior_from(text), len(text))


def summary_text(
    source: Conversation, *, budget_chars: int, instructions: str | None, ending: Ending = "next_step"
) -> str:
    """The nine sections as text of at most `budget_chars`, or the bare headings where that is less."""
    timeline, prior = source.timeline, source.prior
    sections = (
        requests.items(timeline, prior, instructions),
        concepts.items(timeline, prior),
        files.items(timeline, prior),
        failures.items(timeline, prior),
        reports.items(timeline, prior),
        quotes.items(timeline, prior),
        todos.items(timeline, prior),
        work.items(timeline, prior),
        work.next_step(timeline, prior),
    )
    titles = TITLES if ending == "next_step" else UP_TO_TITLES
    headings = [f"{number}. {title}:" for number, title in enumerate(titles, start=1)]
    fixed = len(NOTICE) + len(CARRIED) + 2 + sum(len(heading) + len(EMPTY) + 3 for heading in headings)
    limits = _limits(sections, budget_chars - fixed)
    parts = [NOTICE + (CARRIED if source.prior.entries else "")]
    for heading, entries, limit in zip(headings, sections, limits, strict=True):
        lines = fit(entries, limit).lines
        parts.append("\n".join([heading, *(lines or (EMPTY,))]))
    return clean("\n\n".join(parts))


def budget_chars(source: Conversation, max_output_tokens: int) -> int:
    """How long the summary may be: the output cap, what real summaries need, and half of what it replaces."""
    cap = min(max_output_tokens * CHARS_PER_TOKEN, MAX_CHARS)
    return min(cap, max(MIN_CHARS, int(source.characters * MAX_SHARE_OF_INPUT)))


def _limits(sections: Sequence[Sequence[Item]], room: int) -> list[int]:
    """The room of each section: its share, then what the others leave, in the order of `_HEIRS`."""
    needs = [needed_chars(entries) for entries in sections]
    limits = [min(need, int(max(room, 0) * share)) for need, share in zip(needs, _SHARES, strict=True)]
    spare = max(room, 0) - sum(limits)
    for number, least in _LEAST.items():
        more = max(0, min(spare, min(least, needs[number - 1]) - limits[number - 1]))
        limits[number - 1] += more
        spare -= more
    for number in _HEIRS:
        more = min(spare, needs[number - 1] - limits[number - 1])
        limits[number - 1] += more
        spare -= more
    return limits
