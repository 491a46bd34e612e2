"""A job as its page shows it: one timeline out of attempts and events, the calls with their cost, and the result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Literal

from api.dashboard.message_view import MessageView, text_of
from compaction.core import tokens
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, Usage, usage_from
from compaction.store.job_reads import AttemptRow, JobEvent
from compaction.store.job_rows import JobRow
from compaction.store.results import ResultRow

Tone = Literal["plain", "good", "bad", "warn"]
CALL = "model_call"
TITLES: Mapping[str, tuple[str, Tone]] = {  # the events that people ask about; others are shown by their own name
    "tengu_compact": ("Compacted", "good"),
    "tengu_compact_failed": ("Attempt failed", "bad"),
    "tengu_partial_compact_failed": ("Attempt failed", "bad"),
    "tengu_compact_ptl_retry": ("Prompt too long: oldest rounds cut", "warn"),
    "tengu_cached_microcompact": ("Old tool results cleared in the provider's cache", "good"),
    "microcompact": ("Old tool results cleared", "good"),
    "model_call": ("Model answered", "plain"),
    "model_asked_again": ("Model asked again", "warn"),
    "request_kind": ("Kind of request chosen", "plain"),
    "last_resort": ("Fallback to the extractive summarizer", "warn"),
    "lease_expired": ("Lease expired: the worker was lost", "bad"),
    "deadline_passed": ("Deadline passed", "bad"),
    "cancel_requested": ("Cancel requested", "warn"),
    "hooks_failed": ("A hook failed", "warn"),
    "attachments_failed": ("Attachments left out", "warn"),
    "settings_ignored": ("Settings ignored", "warn"),
}
FACTS: Mapping[str, tuple[str, ...]] = {  # what is told of an event; of others everything
    "tengu_compact": (
        *("strategy", "pre_tokens", "post_tokens", "cost_usd", "ptl_attempts", "dropped_rounds", "dropped_tokens"),
        *("chain", "turns_since_last", "under_threshold", "degraded", "saved_summary_reused"),
    ),
    "tengu_compact_failed": ("code", "retryable", "unit", "gap"),
    "tengu_partial_compact_failed": ("code", "retryable", "scope", "unit", "gap"),
    "model_call": ("model", "stop_reason", "cost_usd"),
}
OUTCOMES: Mapping[str, tuple[str, Tone]] = {
    "succeeded": ("committed", "good"),
    "skipped": ("nothing to do", "good"),
    "failed": ("failed for good", "bad"),
    "retrying": ("failed, will be tried again", "warn"),
    "snoozed": ("sent back to wait for a rate limit", "warn"),
    "released": ("given back", "warn"),
    "cancelled": ("cancelled", "warn"),
    "expired": ("lease expired, token void", "bad"),
    "fenced": ("fenced: its lease had ended, the worker lives", "warn"),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the timeline."""

    at: datetime
    title: str
    tone: Tone
    facts: tuple[tuple[str, Json], ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One answered model call. `cost_usd` is None where no price is known."""

    at: datetime
    model: str
    stop_reason: str
    usage: Usage
    cost_usd: Decimal | None
    request_id: str | None


def timeline(job: JobRow, attempts: Sequence[AttemptRow], events: Iterable[JobEvent]) -> list[Entry]:
    """Everything that happened, oldest first."""
    entries = [Entry(job.created_at, "Accepted", "plain", (("trigger", job.trigger), ("scope", job.scope_kind)))]
    for attempt in attempts:
        facts: tuple[tuple[str, Json], ...] = (("worker", attempt.owner), ("fencing token", attempt.token))
        entries.append(Entry(attempt.started_at, f"Attempt {attempt.attempt}: claimed", "plain", facts))
    # A commit writes events, the attempt's end and the job's in one moment: this is their order, and sorting keeps it.
    entries += [_happened(event) for event in events]
    entries += [_ending(attempt, attempt.ended_at) for attempt in attempts if attempt.ended_at is not None]
    if job.ended_at is not None:
        tone: Tone = {"succeeded": "good", "failed": "bad"}.get(job.status, "warn")  # type: ignore[assignment]  # a Tone
        entries.append(Entry(job.ended_at, f"Ended: {job.status}", tone))
    return sorted(entries, key=lambda entry: entry.at)


def _ending(attempt: AttemptRow, ended_at: datetime) -> Entry:
    words, tone = OUTCOMES.get(attempt.outcome or "", (attempt.outcome or "ended", "plain"))
    error = attempt.error or {}
    facts = tuple((name, error[name]) for name in ("code", "message") if name in error)
    return Entry(ended_at, f"Attempt {attempt.attempt}: {words}", tone, facts)


def _happened(event: JobEvent) -> Entry:
    title, tone = TITLES.get(event.type, (event.type, "plain"))
    names = FACTS.get(event.type, tuple(event.data))
    facts = tuple(
        (name, event.data[name]) for name in names if event.data.get(name) not in (None, "", [], {}, False, 0)
    )
    return Entry(event.at, title, tone, facts)


def calls(events: Iterable[JobEvent]) -> list[Call]:
    """The job's model calls, oldest first."""
    return [_call(event) for event in events if event.type == CALL]


def _call(event: JobEvent) -> Call:
    data = event.data
    return Call(
        at=event.at,
        model=str(data.get("model") or "unknown"),
        stop_reason=str(data.get("stop_reason") or "none"),
        usage=usage_from(data.get("usage")) or Usage(),
        cost_usd=_dollars(data.get("cost_usd")),
        request_id=None if data.get("request_id") is None else str(data["request_id"]),
    )


def _dollars(value: Json) -> Decimal | None:
    try:
        return Decimal(value) if isinstance(value, str) else None
    except InvalidOperation:
        return None


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar, in percent of the widest one."""

    name: str
    tokens: int
    left: float
    width: float


@dataclass(frozen=True, slots=True)
class ResultView:
    """A result for its page: the picture's bars, the summary's text, and what else the session goes on with."""

    row: ResultRow
    summary: str
    before: tuple[Part, ...]
    after: tuple[Part, ...]
    kept: tuple[MessageView, ...]
    attachments: tuple[MessageView, ...]

    @property
    def saved_percent(self) -> float:
        """By how much the session shrank."""
        row = self.row
        return 100 * (row.pre_tokens - row.post_tokens) / row.pre_tokens if row.pre_tokens else 0.0

    @classmethod
    def of(cls, row: ResultRow) -> ResultView:
        """The view of a stored result."""
        body = row.body
        widest = max(row.pre_tokens, row.post_tokens, 1)
        dropped = min(row.dropped.tokens, row.pre_tokens)
        before = [("dropped", dropped), ("replaced", row.pre_tokens - dropped)]
        pieces = [("summary", body.summary), ("kept", body.kept), ("attachments", body.attachments)]
        sizes = [(name, tokens.estimate_messages(part)) for name, part in pieces]
        sizes.append(("other", max(0, row.post_tokens - sum(size for _, size in sizes))))
        return cls(
            row=row,
            summary="\n\n".join(map(text_of, body.summary)),
            before=_bar(before, widest),
            after=_bar(sizes, widest),
            kept=_views(body.kept),
            attachments=_views((*body.attachments, *body.hook_messages)),
        )


def _views(messages: Iterable[Message]) -> tuple[MessageView, ...]:
    return tuple(map(MessageView.of, messages))


def _bar(sizes: Iterable[tuple[str, int]], widest: int) -> tuple[Part, ...]:
    parts: list[Part] = []
    left = 0.0
    for name, size in sizes:
        if size:
            width = min(100 * size / widest, 100 - left)
            parts.append(Part(name, size, round(left, 3), round(width, 3)))
            left += width
    return tuple(parts)
