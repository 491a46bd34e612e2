"""From a history to one paid summary: build the request, call the model, cut and call again when it was too long.

History is loaded anew for each call rather than held while the model writes: hundreds of calls wait at once, and a
decoded session costs more memory than everything else of a job together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from compaction.core import grouping, prompts, summary, truncation
from compaction.core.messages import Message
from compaction.core.results import Dropped
from compaction.core.room import Room
from compaction.errors import PromptTooLong
from compaction.ports import History, PaidSummary, Progress, Recorder, Summarizer, SummaryReply, SummaryRequest

MAX_CUTS = 3  # DESIGN §3: at most three retries of a prompt that was too long

Part = Callable[[Sequence[Message]], tuple[Message, ...]]  # picks what the summary replaces out of a live view


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """One summary to be made; `part` picks the messages that it replaces from the loaded live view."""

    kind: Literal["fresh", "shared_prefix"]
    model: str
    part: Part
    prompts: prompts.Prompts
    max_output_tokens: int
    room: Room
    prior_summary: str | None = None
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class _State:
    """How far the loop is: the refusals so far (each is one cut) and what they removed."""

    refusals: tuple[PromptTooLong, ...] = ()
    max_output_tokens: int = 0
    dropped: Dropped = field(default_factory=Dropped)


class _Percent(Progress):
    """Turns arriving characters into the job's progress: 20 to 80 percent over a summary of the usual length."""

    USUAL_CHARACTERS = 12_000  # median real summary, transcripts/README.md: 11.7k
    EVERY_CHARACTERS = 1_000  # a pollers' update each kilobyte is plenty

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._told = 0

    def characters(self, count: int) -> None:
        if count - self._told >= self.EVERY_CHARACTERS:
            self._told = count
            self._recorder.step("summarizing", 20 + min(60, 60 * count // self.USUAL_CHARACTERS))


async def paid_summary(plan: CallPlan, history: History, summarizer: Summarizer, recorder: Recorder) -> PaidSummary:
    """The validated summary of `plan.part`, saved durably before it is returned.

    Raises the errors of `Summarizer.summarize` and `core.summary.validate`; errors.PromptTooLong after three cuts.
    """
    state = _State(max_output_tokens=plan.max_output_tokens)
    progress = _Percent(recorder)
    while True:
        await recorder.before_call()
        recorder.step("summarizing", 20)
        try:
            reply = await summarizer.summarize(_request(plan, state, await history.load()), progress)
        except PromptTooLong as refusal:
            state = _after_refusal(plan, state, refusal, await history.load(), recorder)
            continue
        paid = _paid(plan, state, reply)
        await recorder.save_summary(paid)
        return paid


def _request(plan: CallPlan, state: _State, messages: Sequence[Message]) -> SummaryRequest:
    return SummaryRequest(
        kind=plan.kind,
        model=plan.model,
        messages=_cut(plan, state.refusals, messages)[0],
        system_prompt=plan.prompts.system,
        user_prompt=plan.prompts.user,
        max_output_tokens=state.max_output_tokens,
        prior_summary=plan.prior_summary,
        instructions=plan.instructions,
    )


def _cut(
    plan: CallPlan, refusals: Sequence[PromptTooLong], messages: Sequence[Message]
) -> tuple[tuple[Message, ...], Dropped]:
    """The part that is summarised, with the cut of each refusal so far applied again in its order."""
    part = plan.part(messages)
    dropped = Dropped()
    for attempt, refusal in enumerate(refusals, 1):
        cut = truncation.cut(part, refusal, attempt=attempt, room=plan.room)
        part = cut.messages
        dropped = dropped.plus(cut.dropped)
    return part, dropped


def _after_refusal(
    plan: CallPlan, state: _State, refusal: PromptTooLong, messages: Sequence[Message], recorder: Recorder
) -> _State:
    """The loop's next state; raises the refusal itself when three cuts were not enough or nothing is left to cut."""
    attempt = len(state.refusals) + 1
    if attempt > MAX_CUTS:
        raise refusal
    lower = truncation.lower_output(refusal, state.max_output_tokens)
    if lower is not None:
        _note_retry(recorder, refusal, attempt, Dropped(), remaining_rounds=None, max_output_tokens=lower)
        return replace(state, max_output_tokens=lower)
    refusals = (*state.refusals, refusal)
    left, dropped = _cut(plan, refusals, messages)
    _note_retry(recorder, refusal, attempt, dropped, remaining_rounds=len(grouping.rounds(left)))
    return replace(state, refusals=refusals, dropped=dropped)


def _note_retry(  # noqa: PLR0913 - the event's fields
    recorder: Recorder,
    refusal: PromptTooLong,
    attempt: int,
    dropped: Dropped,
    *,
    remaining_rounds: int | None,
    max_output_tokens: int | None = None,
) -> None:
    recorder.event(
        "tengu_compact_ptl_retry",
        {
            "attempt": attempt,
            "unit": refusal.unit,
            "gap": refusal.gap,
            "lower_bound": refusal.lower_bound,
            "dropped_rounds": dropped.rounds,
            "dropped_messages": dropped.messages,
            "dropped_tokens": dropped.tokens,
            "remaining_rounds": remaining_rounds,
            "max_output_tokens": max_output_tokens,
        },
    )


def _paid(plan: CallPlan, state: _State, reply: SummaryReply) -> PaidSummary:
    valid = summary.validate(reply)
    return PaidSummary(
        text=valid.text,
        strategy="extractive" if reply.degraded else plan.kind,
        model=reply.model,
        usage=reply.usage,
        degraded=reply.degraded,
        ptl_attempts=len(state.refusals),
        dropped_rounds=state.dropped.rounds,
        dropped_messages=state.dropped.messages,
        dropped_tokens=state.dropped.tokens,
    )
