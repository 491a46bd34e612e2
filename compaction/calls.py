"""From a history to one paid summary: build the request, call the model, and call again the way `core.course` says.

History is loaded anew for each call rather than held while the model writes: hundreds of calls wait at once, and a
decoded session costs more memory than everything else of a job together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from compaction.core import course, microcompact, prompts, summary, tokens, truncation
from compaction.core.course import Course
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, Usage
from compaction.core.results import Dropped, SessionFacts, Spent
from compaction.core.room import Room
from compaction.core.shared_prefix import PrefixNotShareable
from compaction.core.tool_table import ToolTable
from compaction.core.truncation import Cut
from compaction.errors import ApiError, NoSummary, PromptTooLong, ProviderError, Refusal, SummaryTruncated
from compaction.ports import (
    History,
    PaidSummary,
    Price,
    Progress,
    Recorder,
    RequestKind,
    Summarizer,
    SummaryReply,
    SummaryRequest,
)

USUAL_CHARACTERS = 12_000  # median real summary, transcripts/README.md: 11.7k
TELL_EVERY_CHARACTERS = 1_000  # news for pollers each kilobyte is plenty
COUNT_FROM = 0.8  # of the room: below it our estimate, 15 % off on average, needs no check

Part = Callable[[Sequence[Message]], tuple[Message, ...]]  # picks what the summary replaces out of a live view
Ask = Callable[[RequestKind, bool], prompts.Prompts]  # the prompts for a kind of request, shorter or not


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlan:
    """One summary to be made of `part` of the history. `window_tokens` is that of the model that summarises."""

    facts: SessionFacts
    kind: RequestKind
    model: str
    part: Part
    ask: Ask
    table: ToolTable  # whose old results go first when the request is known not to fit
    estimated_tokens: int  # of the part
    window_tokens: int
    max_output_tokens: int
    refused_ratio: float | None = None  # real tokens per estimated one, from the refusal of the producer's own call
    prior_summary: str | None = None
    instructions: str | None = None
    fallback_model: str | None = None
    spent: Spent = field(default_factory=Spent)  # by earlier attempts of the job


@dataclass(slots=True)
class _Spent:
    """What the calls cost so far, failed ones and those of earlier attempts included."""

    usage: Usage
    dollars: Decimal | None

    def add(self, reply: SummaryReply, price: Price) -> Decimal | None:
        """Adds a call; what it cost alone."""
        self.usage = self.usage.plus(reply.usage)
        cost = None if reply.degraded else price(reply.model, reply.usage)
        self.dollars = None if cost is None or self.dollars is None else self.dollars + cost
        return cost


class _Percent:
    """Turns arriving characters into the job's progress: 20 to 80 percent over a summary of the usual length."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._told = 0

    def characters(self, count: int) -> None:
        if count - self._told >= TELL_EVERY_CHARACTERS:
            self._told = count
            self._recorder.step("summarizing", 20 + min(60, 60 * count // USUAL_CHARACTERS))


async def paid_summary(
    plan: CallPlan, history: History, summarizer: Summarizer, recorder: Recorder, price: Price
) -> PaidSummary:
    """The validated summary of `plan.part`, saved durably before it is returned.

    Raises errors.ProviderError, and NoSummary, SummaryTruncated or Refusal when the tries for them are used up.
    """
    spent = _Spent(plan.spent.usage, plan.spent.dollars)
    now = Course(kind=plan.kind, model=plan.model, max_output_tokens=plan.max_output_tokens)
    now = await _counted(plan, now, history, summarizer, recorder)
    paid: PaidSummary | None = None
    while paid is None:
        await recorder.before_call()  # outside: a spent budget is no refusal that a cut could answer
        try:
            reply, dropped = await _call(plan, now, history, summarizer, recorder)
            cost = spent.add(reply, price)
            paid = _paid(now, _judged(reply, cost, recorder).text, reply, spent, dropped)
        except PromptTooLong as refusal:
            now = await _after_refusal(plan, now, refusal, history, recorder)
        except ApiError as error:
            now = course.after_output_limit(now, error)
        except (NoSummary, SummaryTruncated, Refusal) as problem:
            now = course.after_bad_reply(now, problem, plan.fallback_model)
            recorder.event("model_asked_again", {"code": problem.code, "model": now.model, "kind": now.kind})
        except PrefixNotShareable:
            now = replace(now, kind="fresh")
    await recorder.save_summary(paid)
    return paid


async def _after_refusal(
    plan: CallPlan, now: Course, refusal: PromptTooLong, history: History, recorder: Recorder
) -> Course:
    following = course.after_refusal(now, refusal)
    _note_cut(recorder, following, refusal, _cut(plan, following, await history.load()))
    return following


async def _counted(plan: CallPlan, now: Course, history: History, summarizer: Summarizer, recorder: Recorder) -> Course:
    """The course with the provider's own count of the request, when our estimate doubts that it fits.

    The count is a look-up that saves calls. A provider that refuses it as too long has answered the question; other
    trouble with it leaves the question to the refusal that the producer met, where one is known, else to the call.
    """
    room = _room(plan, now)
    if (plan.estimated_tokens + room.fixed_tokens) * (plan.refused_ratio or 1) <= COUNT_FROM * (room.fits_tokens or 0):
        return now
    fresh = replace(now, kind="fresh")
    part = _cut(plan, fresh, await history.load())
    proven = None if plan.refused_ratio is None else round(plan.refused_ratio * _size(part, room))
    asking = summarizer.count_tokens(_request(plan, fresh, part))
    del part
    history.release()
    try:
        counted = await asking
    except PromptTooLong as refusal:
        return await _after_refusal(plan, fresh, refusal, history, recorder)
    except ProviderError as error:
        if error.pauses_provider:
            raise
        counted = None
    counted = proven if counted is None else counted
    fits = room.fits_tokens or 0
    if counted is None or counted <= fits:
        return now
    planned = replace(fresh, counted_tokens=counted)
    found = PromptTooLong(gap=counted - fits, actual=counted, limit=fits)
    _note_cut(recorder, planned, found, _cut(plan, planned, await history.load()))
    return planned


async def _call(
    plan: CallPlan, now: Course, history: History, summarizer: Summarizer, recorder: Recorder
) -> tuple[SummaryReply, Dropped]:
    """The reply, and what the request left out."""
    recorder.step("summarizing", 20)
    progress: Progress = _Percent(recorder)
    part = _cut(plan, now, await history.load())
    dropped = part.dropped
    call = summarizer.summarize(_request(plan, now, part), progress)
    del part
    history.release()  # hundreds of calls wait at once, and no transcript may wait with them
    return await call, dropped


def _judged(reply: SummaryReply, cost: Decimal | None, recorder: Recorder) -> summary.Summary:
    """The summary in the reply. A reply that filled the window is a prompt that was too long by an unknown gap."""
    told: dict[str, Json] = {"model": reply.model, "stop_reason": reply.stop_reason, "usage": reply.usage.to_dict()}
    told["cost_usd"] = None if cost is None else str(cost)
    recorder.event("model_call", told | {"request_id": reply.request_id, "block_types": list(reply.block_types)})
    if reply.stop_reason == "model_context_window_exceeded":
        raise PromptTooLong(request_id=reply.request_id)
    return summary.validate(reply)


def _request(plan: CallPlan, now: Course, part: _CutPart) -> SummaryRequest:
    asked = plan.ask(now.kind, now.shorter)
    shares = now.kind == "shared_prefix"
    return SummaryRequest(
        kind=now.kind,
        model=plan.facts.model if shares else now.model,  # a cache belongs to one model
        messages=part.messages,
        system_prompt=asked.system,
        user_prompt=asked.user,
        max_output_tokens=now.max_output_tokens,
        prior_summary=plan.prior_summary,
        instructions=plan.instructions,
        session_system=plan.facts.system,
        session_tools=plan.facts.tools,
        session_request=plan.facts.request,
    )


@dataclass(frozen=True, slots=True)
class _CutPart:
    """The part of the history that a request sends, and what all cuts together took from it.

    Seqs are None where no whole stored message went; `remaining_rounds` is None before the first cut.
    """

    messages: tuple[Message, ...]
    dropped: Dropped = field(default_factory=Dropped)
    first_seq: int | None = None
    last_seq: int | None = None
    remaining_rounds: int | None = None

    def after(self, cut: Cut) -> _CutPart:
        firsts = [seq for seq in (self.first_seq, cut.first_seq) if seq is not None]
        lasts = [seq for seq in (self.last_seq, cut.last_seq) if seq is not None]
        dropped = self.dropped.plus(cut.dropped)
        ends = min(firsts, default=None), max(lasts, default=None)
        return _CutPart(cut.messages, dropped, *ends, cut.remaining_rounds)


def _cut(plan: CallPlan, now: Course, messages: Sequence[Message]) -> _CutPart:
    """The part with every cut of the course, made again in its order."""
    room = _room(plan, now)
    part = _CutPart(plan.part(messages))
    if now.counted_tokens is not None:
        part = _fitted(plan, part, now.counted_tokens, room)
    for attempt, refusal in enumerate(now.refusals, 1):
        part = part.after(truncation.cut(part.messages, refusal, attempt=attempt, room=room))
    return part


def _fitted(plan: CallPlan, part: _CutPart, counted: int, room: Room) -> _CutPart:
    """The part of a request that the provider counted and found too long: old results go first, then oldest rounds."""
    fits = room.fits_tokens or 0
    own = _size(part, room)
    micro = microcompact.prepare(part.messages, table=plan.table, excess_tokens=own - own * fits // counted)
    if micro is not None:
        counted -= micro.saved_tokens * counted // own
        part = _CutPart(micro.messages, part.dropped.plus(Dropped(tokens=micro.saved_tokens)))
    planned = truncation.plan_cut(part.messages, fits, counted=counted, room=room)
    return part if planned is None else part.after(planned)


def _size(part: _CutPart, room: Room) -> int:
    """The tokens of a request that sends the part, by our own measure."""
    return room.fixed_tokens + sum(map(room.measure, part.messages))


def _room(plan: CallPlan, now: Course) -> Room:
    asked = plan.ask(now.kind, now.shorter)
    return Room(
        fits_tokens=plan.window_tokens - now.max_output_tokens,
        fixed_tokens=tokens.estimate_text(asked.system) + tokens.estimate_text(asked.user),
    )


def _note_cut(recorder: Recorder, now: Course, refusal: PromptTooLong, part: _CutPart) -> None:
    """The event of a cut: attempt 0 is the one that was planned before a request, from what the provider counted."""
    dropped = part.dropped
    recorder.event(
        "tengu_compact_ptl_retry",
        {
            "attempt": now.ptl_attempts,
            "unit": refusal.unit,
            "gap": refusal.gap,
            "lower_bound": refusal.lower_bound,
            "dropped_rounds": dropped.rounds,
            "dropped_messages": dropped.messages,
            "dropped_tokens": dropped.tokens,
            "first_seq": part.first_seq,
            "last_seq": part.last_seq,
            "remaining_rounds": part.remaining_rounds,
            "max_output_tokens": now.max_output_tokens,
        },
    )


def _paid(now: Course, text: str, reply: SummaryReply, spent: _Spent, dropped: Dropped) -> PaidSummary:
    return PaidSummary(
        text=text,
        strategy="extractive" if reply.degraded else now.kind,
        model=reply.model,
        usage=spent.usage,
        cost_usd=None if reply.degraded or spent.dollars is None else str(spent.dollars),
        degraded=reply.degraded,
        ptl_attempts=now.ptl_attempts,
        dropped_rounds=dropped.rounds,
        dropped_messages=dropped.messages,
        dropped_tokens=dropped.tokens,
    )
