"""From what a compaction made to its result: boundary, summary message, kept messages, attachments, hooks' messages."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from decimal import Decimal

from compaction import events
from compaction.core import attachments, chronology, kept, rebuilt, summary, tokens
from compaction.core.attachments import Built
from compaction.core.boundary import Boundary
from compaction.core.context_edits import CacheEdit
from compaction.core.messages import Message, Usage, conversation
from compaction.core.microcompact import MicroCompaction
from compaction.core.results import CompactionResult, Dropped
from compaction.ports import PaidSummary, SessionStartAnswer
from compaction.task import Survey, Task

_IDS = uuid.UUID("5b1d2a52-3f0c-5c0e-9f7e-6c6f6d706163")  # namespace of the uuids we give to our own messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The summary and what it cost, however it was made. `pinned` are the constraints after it."""

    text: str
    strategy: str
    pinned: tuple[str, ...]
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    cost_usd: Decimal | None = None
    ptl_attempts: int = 0
    dropped: Dropped = field(default_factory=Dropped)
    degraded: bool = False


def made_of(paid: PaidSummary, pinned: tuple[str, ...]) -> Made:
    """A model's summary."""
    return Made(
        text=paid.text,
        strategy=paid.strategy,
        pinned=pinned,
        model=paid.model,
        usage=paid.usage,
        cost_usd=None if paid.cost_usd is None else Decimal(paid.cost_usd),
        ptl_attempts=paid.ptl_attempts,
        dropped=Dropped(paid.dropped_rounds, paid.dropped_messages, paid.dropped_tokens),
        degraded=paid.degraded,
    )


def assemble(task: Task, view: Survey, made: Made, built: Built, start: SessionStartAnswer) -> CompactionResult:
    """The result of a compaction with a summary.

    Attachments are left out, the least needed first, where they would take the session over its threshold or make it
    larger than what the summary replaces. Sizes after the compaction are estimates times the session's learned ratio,
    like those before it.
    """
    stay = view.kept.messages
    estimated = round(view.ratio * (view.overhead_tokens + view.replaced_tokens + tokens.estimate_messages(stay)))
    boundary = replace(_boundary(task, view, made.strategy), pinned=made.pinned, estimated_tokens=estimated)
    message = summary_message(task, view, made, boundary)
    added = tokens.estimate_messages((message, *start.messages))
    fixed = view.overhead_tokens + added + tokens.estimate_messages(stay)
    room = min(int(task.thresholds.auto_compact / view.ratio) - 1 - fixed, view.replaced_tokens - 1 - added)
    restored = _named(task, "attachment", attachments.within(built.messages, max(0, room)))
    after = round(view.ratio * (fixed + tokens.estimate_messages(restored)))
    return CompactionResult(
        job_id=task.order.job_id,
        strategy=made.strategy,
        boundary=replace(boundary, preserved=kept.preserved(stay, message.uuid)),
        summary=(message,),
        kept=stay,
        attachments=restored,
        hook_messages=_named(task, "hook", tuple(map(rebuilt.hook_message, start.messages))),
        pre_tokens=view.pre_tokens,
        post_tokens=after,
        usage=made.usage,
        cost_usd=made.cost_usd,
        model=made.model,
        ptl_attempts=made.ptl_attempts,
        dropped=made.dropped,
        covers_through_seq=task.covers_through_seq,
        prefix_hash=view.prefix_hash,
        degraded=made.degraded,
        hook_results=tuple(map(events.note, start.notes)),
        under_threshold=after < task.thresholds.auto_compact,
    )


def without_old_results(task: Task, view: Survey, micro: MicroCompaction) -> CompactionResult:
    """The result of micro-compaction alone: the rewritten history, no summary."""
    stay = kept.behind_ours(conversation(micro.messages))
    return _light(task, view, stay, micro.cleared_ids, micro.saved_tokens)


def with_context_edit(task: Task, view: Survey, messages: tuple[Message, ...], edit: CacheEdit) -> CompactionResult:
    """The result of a decision that the API carries out: the history as it was, and the edit to send with it."""
    light = _light(task, view, conversation(messages), edit.cleared_ids, edit.saved_tokens)
    return replace(light, context_management=edit.context_management)


def _light(
    task: Task, view: Survey, stay: tuple[Message, ...], cleared_ids: tuple[str, ...], saved_tokens: int
) -> CompactionResult:
    boundary = _boundary(task, view, "microcompact")
    after = max(0, view.pre_tokens - round(view.ratio * saved_tokens))
    return CompactionResult(
        job_id=task.order.job_id,
        strategy="microcompact",
        boundary=replace(boundary, pinned=view.pinned_before, preserved=kept.preserved(stay, boundary.uuid)),
        kept=stay,
        pre_tokens=view.pre_tokens,
        post_tokens=after,
        covers_through_seq=task.covers_through_seq,
        prefix_hash=view.prefix_hash,
        cleared_ids=cleared_ids,
        under_threshold=after < task.thresholds.auto_compact,
    )


def gains(view: Survey, result: CompactionResult) -> bool:
    """Whether what stands for the replaced messages is smaller than they are, by the same estimator (DESIGN §8)."""
    instead = (*result.summary, *result.attachments, *result.hook_messages)
    return tokens.estimate_messages(instead) < view.replaced_tokens


def _boundary(task: Task, view: Survey, strategy: str) -> Boundary:
    return Boundary(
        uuid=_uuid(task, "boundary"),
        trigger=task.order.trigger,
        strategy=strategy,
        pre_tokens=view.pre_tokens,
        covers_through_seq=task.covers_through_seq,
        job_id=task.order.job_id,
        scope=task.order.scope.kind,
        chain=view.chain + 1,
    )


def summary_message(task: Task, view: Survey, made: Made, boundary: Boundary) -> Message:
    """The user message that carries the summary into the compacted conversation."""
    stay = view.kept
    text = summary.compact_text(
        made.text,
        kept_tail=len(stay.messages) > stay.earlier,
        kept_earlier=stay.earlier > 0,
        auto=task.order.trigger in {"auto", "reactive"},
        pinned=made.pinned,
    )
    return Message(
        role="user",
        content=text,
        uuid=_uuid(task, "summary"),
        parent_uuid=boundary.uuid,
        is_compact_summary=True,
        metadata=chronology.summary_metadata(stay.earlier),
    )


def _named(task: Task, part: str, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages with uuids of ours, so that a producer can store them like any other."""
    return tuple(
        message if message.uuid else replace(message, uuid=_uuid(task, f"{part}/{place}"))
        for place, message in enumerate(messages)
    )


def _uuid(task: Task, part: str) -> str:
    """The same for each attempt of a job, so that a repeated commit gives the same messages."""
    return str(uuid.uuid5(_IDS, f"{task.order.job_id}/{part}"))
