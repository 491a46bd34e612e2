"""compact_conversation(): the steps of one full compaction, over ports.

PreCompact hooks → prompt → model call with the prompt-too-long loop → validation → attachments → SessionStart hooks →
CompactionResult → events → cleanup. Everything that decides is in `core`; everything that waits is behind a port.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from compaction import calls
from compaction.core import constraints, partial, prompts, summary, tokens, wire
from compaction.core.boundary import Boundary
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, conversation
from compaction.core.results import CompactionResult, Dropped, Order, SessionFacts
from compaction.core.thresholds import Thresholds
from compaction.errors import HookRejected, NoSummary, NotEffective, ProviderError, Refusal, SummaryTruncated
from compaction.ports import (
    History,
    HookContext,
    HookNote,
    Hooks,
    PaidSummary,
    Recorder,
    RequestKind,
    SessionStartAnswer,
    Summarizer,
)

SUMMARY_TOKENS = 20_000  # DESIGN §3: the summary's output cap; p99.99 of real summaries is 17,387
_IDS = uuid.UUID("5b1d2a52-3f0c-5c0e-9f7e-6c6f6d706163")  # namespace of the uuids we give to our own messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One attempt at one job: what was asked, of which snapshot, and what an earlier attempt paid for."""

    facts: SessionFacts
    order: Order
    covers_through_seq: int
    thresholds: Thresholds
    model: str  # who writes the summary
    window_tokens: int  # of that model
    max_output_tokens: int  # of that model
    fallback_model: str | None = None  # asked once when the model refuses
    attempt: int = 1
    is_last_attempt: bool = False
    paid: PaidSummary | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The world of one attempt."""

    history: History
    summarizer: Summarizer
    recorder: Recorder
    hooks: Hooks
    price: calls.Price
    last_resort: Summarizer | None = None  # used when the order allows a fallback and the model gave no summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The numbers of a live view, taken before the call so that the messages need not be held while it runs."""

    pre_tokens: int
    replaced_tokens: int
    overhead_tokens: int  # system prompt and tools, which no compaction can shrink
    kept: tuple[Message, ...]
    prior_summary: str | None
    pinned: tuple[str, ...]  # standing constraints that an earlier compaction carried on
    prefix_hash: str


async def compact_conversation(task: Task, ports: Ports) -> CompactionResult:
    """The compacted conversation. Raises errors.JobError subclasses; nothing stored is changed by a failure."""
    survey = survey_of(task, await ports.history.load())
    context = _hook_context(task, survey)
    instructions = await _instructions(task, ports.hooks, context)
    paid = task.paid or await _summary(task, ports, survey, instructions)
    pinned = constraints.pinned(survey.pinned, paid.text, _replaced(await ports.history.load()))
    ports.recorder.step("attachments", 85)
    start = await ports.hooks.session_start(context)
    ports.recorder.step("committing", 95)
    result = _result(task, survey, paid, start, pinned)
    _check_effective(survey, result)
    ports.recorder.event("tengu_compact", compact_event(task, result))
    return result


def survey_of(task: Task, messages: Sequence[Message]) -> Survey:
    """The numbers of the loaded live view."""
    facts = task.facts
    split = partial.split_full(messages)
    counted = tokens.session_tokens(messages, system=facts.system, tools=facts.tools)
    return Survey(
        pre_tokens=counted.tokens,
        replaced_tokens=tokens.estimate_messages(split.replaced),
        overhead_tokens=tokens.estimate_overhead(facts.system, facts.tools),
        kept=split.kept,
        prior_summary=_prior_summary(split.replaced),
        pinned=pinned_before(messages),
        prefix_hash=wire.prefix_hash(conversation(messages)),
    )


def pinned_before(messages: Sequence[Message]) -> tuple[str, ...]:
    """The standing constraints on the boundary that the live view begins with."""
    for message in messages:
        if message.is_boundary and message.metadata is not None:
            listed = message.metadata.get("pinned")
            return tuple(text for text in listed if isinstance(text, str)) if isinstance(listed, list) else ()
    return ()


def summary_message(order: Order, paid: PaidSummary, boundary: Boundary, *, kept: bool) -> Message:
    """The user message that carries the summary into the compacted conversation."""
    automatic = order.trigger in {"auto", "reactive"}
    return Message(
        role="user",
        content=summary.compact_text(paid.text, kept_tail=kept, auto=automatic, pinned=boundary.pinned),
        uuid=_uuid(order.job_id, "summary"),
        parent_uuid=boundary.uuid,
        is_compact_summary=True,
    )


def compact_event(task: Task, result: CompactionResult) -> dict[str, Json]:
    """The fields of tengu_compact."""
    return {
        "trigger": task.order.trigger,
        "auto": task.order.trigger == "auto",
        "strategy": result.strategy,
        "pre_tokens": result.pre_tokens,
        "post_tokens": result.post_tokens,
        "usage": result.usage.to_dict(),
        "model": result.model,
        "attempt": task.attempt,
        "ptl_attempts": result.ptl_attempts,
        "dropped_rounds": result.dropped.rounds,
        "dropped_tokens": result.dropped.tokens,
        "query_source": task.facts.query_source,
        "under_threshold": result.under_threshold,
        "degraded": result.degraded,
        "saved_summary_reused": task.paid is not None,
    }


async def _instructions(task: Task, hooks: Hooks, context: HookContext) -> tuple[str, ...]:
    answer = await hooks.pre_compact(context)
    if answer.veto is not None:
        raise HookRejected(f"A PreCompact hook vetoed this compaction: {answer.veto}")
    given = (task.order.instructions, _text(task.facts.settings.get("instructions")), answer.instructions)
    return tuple(text for text in given if text and text.strip())


async def _summary(task: Task, ports: Ports, survey: Survey, instructions: tuple[str, ...]) -> PaidSummary:
    """A paid summary, or the last resort's where the order allows it and the model gave none."""
    ports.recorder.step("preparing", 10)
    plan = _plan(task, survey, instructions)
    try:
        return await calls.paid_summary(plan, ports.history, ports.summarizer, ports.recorder, ports.price)
    except (ProviderError, NoSummary, SummaryTruncated, Refusal) as error:
        comes_again = error.pauses_provider or (error.retryable and not task.is_last_attempt)
        if ports.last_resort is None or comes_again:
            raise
        ports.recorder.event("last_resort", {"code": error.code, "summarizer": ports.last_resort.name})
        return await calls.paid_summary(plan, ports.history, ports.last_resort, ports.recorder, ports.price)


def _plan(task: Task, survey: Survey, instructions: tuple[str, ...]) -> calls.CallPlan:
    def ask(kind: RequestKind, shorter: bool) -> prompts.Prompts:  # noqa: FBT001 - called by position, through a type
        return prompts.build_prompts(
            "base",
            request_kind=kind,
            prior_summary=survey.prior_summary is not None,
            instructions=instructions,
            pinned=survey.pinned,
            shorter=shorter,
        )

    return calls.CallPlan(
        facts=task.facts,
        kind="fresh",
        model=task.model,
        part=_replaced,
        ask=ask,
        estimated_tokens=survey.replaced_tokens,
        window_tokens=task.window_tokens,
        max_output_tokens=min(SUMMARY_TOKENS, task.max_output_tokens),
        prior_summary=survey.prior_summary,
        instructions="\n\n".join(instructions) or None,
        fallback_model=task.fallback_model,
    )


def _replaced(messages: Sequence[Message]) -> tuple[Message, ...]:
    return partial.split_full(messages).replaced


def _result(
    task: Task, survey: Survey, paid: PaidSummary, start: SessionStartAnswer, pinned: tuple[str, ...]
) -> CompactionResult:
    order = task.order
    boundary = Boundary(
        uuid=_uuid(order.job_id, "boundary"),
        trigger=order.trigger,
        strategy=paid.strategy,
        pre_tokens=survey.pre_tokens,
        covers_through_seq=task.covers_through_seq,
        job_id=order.job_id,
        pinned=pinned,
    )
    message = summary_message(order, paid, boundary, kept=bool(survey.kept))
    after = survey.overhead_tokens + tokens.estimate_messages((message, *survey.kept, *start.messages))
    return CompactionResult(
        job_id=order.job_id,
        strategy=paid.strategy,
        boundary=boundary,
        summary=(message,),
        kept=survey.kept,
        hook_messages=start.messages,
        pre_tokens=survey.pre_tokens,
        post_tokens=after,
        usage=paid.usage,
        cost_usd=None if paid.cost_usd is None else Decimal(paid.cost_usd),
        model=paid.model,
        ptl_attempts=paid.ptl_attempts,
        dropped=Dropped(paid.dropped_rounds, paid.dropped_messages, paid.dropped_tokens),
        covers_through_seq=task.covers_through_seq,
        prefix_hash=survey.prefix_hash,
        degraded=paid.degraded,
        hook_results=tuple(_note(note) for note in start.notes),
        under_threshold=after < task.thresholds.auto_compact,
    )


def _check_effective(survey: Survey, result: CompactionResult) -> None:
    """A summary must be smaller than what it replaces, by the same estimator (DESIGN §8)."""
    if tokens.estimate_messages(result.summary) >= survey.replaced_tokens:
        raise NotEffective


def _prior_summary(messages: Sequence[Message]) -> str | None:
    for message in messages:
        if message.is_compact_summary:
            return summary.extract_summary_text(message)
    return None


def _hook_context(task: Task, survey: Survey) -> HookContext:
    return HookContext(
        tenant=task.facts.tenant,
        session_id=task.facts.session_id,
        job_id=task.order.job_id,
        trigger=task.order.trigger,
        instructions=task.order.instructions,
        pre_tokens=survey.pre_tokens,
    )


def _note(note: HookNote) -> dict[str, Json]:
    return {"name": note.name, "event": note.event, "ok": note.ok, "seconds": note.seconds, "problem": note.problem}


def _uuid(job_id: str, part: str) -> str:
    """The same for each attempt of a job, so that a repeated commit gives the same messages."""
    return str(uuid.uuid5(_IDS, f"{job_id}/{part}"))


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
