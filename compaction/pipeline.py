"""compact_conversation(): the steps of one compaction with a summary, over ports.

PreCompact hooks → prompt → model call with the prompt-too-long loop → validation → attachments → SessionStart hooks →
CompactionResult → events. Everything that decides is in `core`; everything that waits is behind a port. The clean-up
afterwards belongs to the commit (`core.cleanup`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction import calls, events
from compaction.assembly import Made, assemble, gains, made_of
from compaction.core import attachments, constraints, partial, pinned, prompts, sharing, user_words
from compaction.core.attachments import Built
from compaction.core.messages import Message
from compaction.core.results import CompactionResult
from compaction.core.session_memory import MemoryCompaction
from compaction.errors import HookRejected, NoSummary, NotEffective, ProviderError, Refusal, SummaryTruncated
from compaction.ports import HookContext, PaidSummary, PreCompactAnswer, RequestKind, SessionStartAnswer
from compaction.task import Ports, Survey, Task, memory_survey, survey, text_of

HELD_CHARACTERS = (
    300_000  # a third of the megabyte that a job may take while its call runs; beyond, history is read again
)
SUMMARY_TOKENS = 20_000  # DESIGN §3: the summary's output cap; p99.99 of real summaries is 17,387

SMALL_WINDOW_SHARE = 4  # below 80,000 tokens a window gives a quarter of itself to the summary

_PROMPTS: dict[str, prompts.Kind] = {"full": "base", "up_to": "up_to", "from": "from"}


def output_tokens(task: Task) -> int:
    """The most that a summary may take."""
    return min(SUMMARY_TOKENS, task.max_output_tokens, max(1, task.window_tokens // SMALL_WINDOW_SHARE))


async def compact_conversation(task: Task, ports: Ports) -> CompactionResult:
    """The compacted conversation. Raises errors.JobError subclasses; nothing stored is changed by a failure."""
    view = survey(task, await ports.history.load())
    if not view.replaced_tokens:
        raise NotEffective("Nothing would be left out: all messages in the scope must stay word for word.")
    asked = await _asked(task, ports, view)
    rest = await _rest(task, ports, view)
    held = rest if rest.characters <= HELD_CHARACTERS else None
    del rest
    paid = task.paid or await _summary(task, ports, view, _instructions(task, asked.answer))
    rest = held or await _rest(task, ports, view)
    made = made_of(paid, pinned.within(constraints.after_summary(view.pinned, paid.text, rest.said)))
    return await _finished(task, ports, view, made, asked, rest.built)


async def compact_with_memory(task: Task, ports: Ports, memory: MemoryCompaction) -> CompactionResult | None:
    """The conversation with the session's own memory in the place of a summary; no model is called.

    None when the session would stay at its threshold, or when the memory is as long as what it stands for: a model may
    do better. That is seen before any hook is asked.
    """
    view = memory_survey(survey(task, await ports.history.load()), memory)
    made = Made(text=memory.summary, strategy="session_memory", pinned=view.pinned)
    plain = assemble(task, view, made, Built(), SessionStartAnswer())
    if not plain.under_threshold or not gains(view, plain):
        return None
    asked = await _asked(task, ports, view)
    built = (await _rest(task, ports, view)).built
    return await _finished(task, ports, view, made, asked, built)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the hooks were told, and what they answered before the compaction."""

    context: HookContext
    answer: PreCompactAnswer


@dataclass(frozen=True, slots=True)
class _Rest:
    """All that the steps after the call need of the history: what the user wrote, and the attachments."""

    said: tuple[str, ...]
    built: Built

    @property
    def characters(self) -> int:
        """How much of the history it holds."""
        texts = (block["text"] for message in self.built.messages for block in message.blocks())
        return sum(map(len, (*self.said, *texts)))


async def _rest(task: Task, ports: Ports, view: Survey) -> _Rest:
    messages = await ports.history.load()
    state = attachments.with_transcript_files(task.state, messages, view.kept.messages, task.table)
    said = user_words.user_texts(_replaced(task, messages))
    return _Rest(said, attachments.build(state, view.kept.messages, task.table))


async def _asked(task: Task, ports: Ports, view: Survey) -> _Asked:
    context = _hook_context(task, view)
    answer = await ports.hooks.pre_compact(context)
    if troubled := [events.note(one) for one in answer.notes if not one.ok]:
        ports.recorder.event("hooks_failed", {"hooks": troubled})  # a veto leaves no result that could tell
    if answer.veto is not None:
        raise HookRejected(f"A PreCompact hook vetoed this compaction: {answer.veto}")
    return _Asked(context, answer)


def _instructions(task: Task, before: PreCompactAnswer) -> tuple[str, ...]:
    """Standing ones first, then those of the session, the order and the hooks."""
    standing = (prompts.compact_instructions(note.text) for note in task.state.claude_md)
    given = (*standing, text_of(task.facts.settings.get("instructions")), task.order.instructions, before.instructions)
    return tuple(text for text in given if text and text.strip())


async def _summary(task: Task, ports: Ports, view: Survey, instructions: tuple[str, ...]) -> PaidSummary:
    """A paid summary, or the last resort's where the order allows it and the model gave none."""
    ports.recorder.step("preparing", 10)
    summarizer = ports.extractive if task.order.strategy == "extractive" else ports.summarizer
    plan = _plan(task, view, instructions, _kind(task, ports, view, await ports.history.load()))
    if summarizer.name == ports.extractive.name:
        plan = replace(plan, refused_ratio=None)  # it has no window that a refusal could tell about
    try:
        return await calls.paid_summary(plan, ports.history, summarizer, ports.recorder, ports.price)
    except (ProviderError, NoSummary, SummaryTruncated, Refusal) as error:
        comes_again = error.pauses_provider or (error.retryable and not task.is_last_attempt)
        if not ports.last_resort or comes_again:
            raise
        ports.recorder.event("last_resort", {"code": error.code, "summarizer": ports.extractive.name})
        fresh = replace(plan, kind="fresh", refused_ratio=None)
        return await calls.paid_summary(fresh, ports.history, ports.extractive, ports.recorder, ports.price)


def _kind(task: Task, ports: Ports, view: Survey, messages: Sequence[Message]) -> RequestKind:
    """Whether the summary rides on the main conversation's cache, and why (an event tells)."""
    if task.order.strategy is not None:
        return "shared_prefix" if task.order.strategy == "shared_prefix" else "fresh"
    if task.order.scope.kind != "full":
        return "fresh"
    wish = sharing.Sharing(
        now=task.now,
        tokens=max(view.pre_tokens, task.refused_tokens or 0),
        room_tokens=task.room_tokens,
        min_cacheable_tokens=task.min_cacheable_tokens,
        max_output_tokens=output_tokens(task),
        fresh_model=task.model,
        enabled=task.shares_prefix,
    )
    reason = sharing.decide(task.facts, messages, wish, ports.price)
    ports.recorder.event("request_kind", {"reason": reason})
    return "shared_prefix" if reason == "shared" else "fresh"


def _plan(task: Task, view: Survey, instructions: tuple[str, ...], kind: RequestKind) -> calls.CallPlan:
    def ask(kind: RequestKind, shorter: bool) -> prompts.Prompts:  # noqa: FBT001 - called by position, through a type
        return prompts.build_prompts(
            _PROMPTS[task.order.scope.kind],
            request_kind=kind,
            prior_summary=view.prior_summary is not None,
            instructions=instructions,
            pinned=view.pinned,
            shorter=shorter,
        )

    return calls.CallPlan(
        facts=task.facts,
        kind=kind,
        model=task.model,
        part=lambda messages: _replaced(task, messages),
        ask=ask,
        table=task.table,
        estimated_tokens=view.replaced_tokens,
        refused_ratio=view.refused_ratio,
        window_tokens=task.window_tokens,
        max_output_tokens=output_tokens(task),
        prior_summary=view.prior_summary,
        instructions="\n\n".join(instructions) or None,
        fallback_model=task.fallback_model,
        spent=task.spent,
    )


def _replaced(task: Task, messages: Sequence[Message]) -> tuple[Message, ...]:
    return partial.split(messages, task.order.scope).replaced


async def _finished(  # noqa: PLR0913, PLR0917 - all that was made on the way
    task: Task, ports: Ports, view: Survey, made: Made, asked: _Asked, built: Built
) -> CompactionResult:
    """SessionStart hooks, the result and its event. Raises NotEffective when nothing was gained."""
    ports.recorder.step("attachments", 85)
    ports.history.release()  # hooks may take a while
    start = await ports.hooks.session_start(asked.context)
    start = replace(start, notes=(*asked.answer.notes, *start.notes))
    ports.recorder.step("committing", 95)
    result = assemble(task, view, made, built, start)
    if not gains(view, result):
        raise NotEffective
    if built.failed:
        ports.recorder.event("attachments_failed", {"kinds": list(built.failed)})
    ports.recorder.event("tengu_compact", events.compacted(task, view, result))
    return result


def _hook_context(task: Task, view: Survey) -> HookContext:
    return HookContext(
        tenant=task.facts.tenant,
        session_id=task.facts.session_id,
        job_id=task.order.job_id,
        trigger=task.order.trigger,
        instructions=task.order.instructions,
        pre_tokens=view.pre_tokens,
    )
