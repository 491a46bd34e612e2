"""From a history to one paid summary, over fakes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from compaction.calls import CallPlan, paid_summary
from compaction.core.messages import Message, Usage
from compaction.core.prompts import Prompts
from compaction.core.results import SessionFacts, Spent
from compaction.core.shared_prefix import PrefixNotShareable
from compaction.core.tokens import estimate_messages
from compaction.core.tool_table import tool_table
from compaction.errors import ApiError, AuthError, NoSummary, Overloaded, PromptTooLong, SummaryTruncated
from compaction.ports import PaidSummary, Progress, RequestKind, SummaryReply, SummaryRequest
from tests.unit.fakes import MemoryHistory, MemoryRecorder, ScriptedSummarizer, flat_price, summary_reply, talk

pytestmark = pytest.mark.anyio

FACTS = SessionFacts(session_id="s1", tenant="t1", model="claude-haiku-4-5", system="You are an agent.")
TOO_LONG = PromptTooLong(gap=3_000, actual=13_000, limit=10_000)


def plan(kind: RequestKind = "fresh", **changes: object) -> CallPlan:
    """A plan that replaces everything."""
    fields: dict[str, object] = {
        "facts": FACTS,
        "kind": kind,
        "model": "claude-haiku-4-5",
        "part": tuple,
        "ask": lambda kind, shorter: Prompts("system" if kind == "fresh" else "", "shorter" if shorter else "sum up"),
        "table": tool_table(),
        "estimated_tokens": 10_000,
        "window_tokens": 200_000,
        "max_output_tokens": 20_000,
    }
    return CallPlan(**(fields | changes))  # type: ignore[arg-type]  # a test's shorthand


class Run:
    """One run over fakes."""

    def __init__(self, *script: SummaryReply | Exception, history: tuple[Message, ...] = ()) -> None:
        self.summarizer = ScriptedSummarizer(list(script))  # type: ignore[arg-type]  # PrefixNotShareable is no JobError
        self.history = MemoryHistory(history or talk(12))
        self.recorder = MemoryRecorder()

    async def __call__(self, wanted: CallPlan) -> PaidSummary:
        """The paid summary."""
        return await paid_summary(wanted, self.history, self.summarizer, self.recorder, flat_price)


async def test_one_good_reply_is_saved_before_it_is_returned() -> None:
    run = Run()
    paid = await run(plan())
    assert run.recorder.saved == [paid]
    assert paid.text.startswith("1. Primary Request")
    assert (paid.strategy, paid.ptl_attempts, run.recorder.calls) == ("fresh", 0, 1)


async def test_usage_and_cost_count_all_calls_the_failed_ones_too() -> None:
    """Two calls of 40,900 tokens at a dollar per million."""
    run = Run(summary_reply("nothing"), summary_reply())
    run.summarizer.script[0] = SummaryReply(
        text=" ", stop_reason="end_turn", usage=summary_reply().usage, model="claude-haiku-4-5"
    )
    paid = await run(plan())
    assert paid.usage.total_tokens == 81_800
    assert Decimal(paid.cost_usd or 0) == Decimal("0.0818")


async def test_what_earlier_attempts_paid_is_counted_too() -> None:
    """A call of 40,900 tokens at a dollar per million, after two dollars' worth."""
    run = Run()
    paid = await run(plan(spent=Spent(Usage(input_tokens=2_000_000), Decimal(2))))
    assert paid.usage.total_tokens == 2_040_900
    assert Decimal(paid.cost_usd or 0) == Decimal("2.0409")
    [told] = [fields for name, fields in run.recorder.events if name == "model_call"]
    assert Decimal(str(told["cost_usd"])) == Decimal("0.0409")  # the call's own


async def test_a_prompt_that_was_too_long_is_cut_and_the_cut_is_told() -> None:
    run = Run(TOO_LONG, summary_reply())
    paid = await run(plan())
    sent = [len(request.messages) for request in run.summarizer.requests]
    assert sent[1] < sent[0]
    assert paid.dropped_rounds > 0
    told = dict(run.recorder.events)["tengu_compact_ptl_retry"]
    assert (told["attempt"], told["gap"]) == (1, 3_000)
    assert told["dropped_rounds"] == paid.dropped_rounds
    assert told["first_seq"] == 1


async def test_cuts_add_up_over_refusals() -> None:
    run = Run(TOO_LONG, TOO_LONG, summary_reply())
    paid = await run(plan())
    sent = [len(request.messages) for request in run.summarizer.requests]
    assert sent == sorted(sent, reverse=True)
    assert paid.ptl_attempts == 2
    told = [fields["dropped_rounds"] for name, fields in run.recorder.events if name == "tengu_compact_ptl_retry"]
    assert told[1] == paid.dropped_rounds > told[0]
    ranges = [(fields["first_seq"], fields["last_seq"]) for name, fields in run.recorder.events if "gap" in fields]
    assert [first for first, _ in ranges] == [1, 1]  # what is told is everything that is missing, not the newest cut
    assert ranges[1][1] == paid.dropped_messages > ranges[0][1]  # stored from seq 1 on without gaps


async def test_a_request_that_cannot_fit_is_counted_and_cut_before_it_is_sent() -> None:
    run = Run()
    run.summarizer.counted_tokens = 30_000
    paid = await run(plan(estimated_tokens=14_000, window_tokens=30_000))
    assert len(run.summarizer.requests) == 1
    assert (paid.ptl_attempts, run.recorder.calls) == (0, 1)
    assert paid.dropped_rounds > 0


async def test_a_cut_that_was_planned_is_told_like_any_other_before_the_call() -> None:
    """30,000 counted where 10,000 fit: the gap of 20,000 belongs to no retry, so the attempt is 0."""
    run = Run()
    run.summarizer.counted_tokens = 30_000
    paid = await run(plan(estimated_tokens=14_000, window_tokens=30_000))
    names = [name for name, _ in run.recorder.events]
    assert names.index("tengu_compact_ptl_retry") < names.index("model_call")
    told = dict(run.recorder.events)["tengu_compact_ptl_retry"]
    assert (told["attempt"], told["unit"], told["gap"], told["lower_bound"]) == (0, "tokens", 20_000, False)
    assert (told["dropped_rounds"], told["dropped_tokens"]) == (paid.dropped_rounds, paid.dropped_tokens)
    assert (told["first_seq"], told["last_seq"]) == (1, paid.dropped_messages)


async def test_a_count_that_nothing_can_answer_fails_before_the_call() -> None:
    """One tiny round that is counted as too long: no text in it can be cut, so nobody is asked."""
    run = Run(history=(Message(role="user", content="Go.", seq=1),))
    run.summarizer.counted_tokens = 30_000
    with pytest.raises(PromptTooLong):
        await run(plan(estimated_tokens=14_000, window_tokens=30_000))
    assert (run.summarizer.requests, run.recorder.calls) == ([], 0)


async def test_old_tool_results_are_cleared_before_whole_rounds_go() -> None:
    """Ten results of 1,000 tokens, counted a third too long: what is cleared stands in no summary."""
    messages = [Message(role="user", content="Read all of it.", seq=1)]
    for number in range(1, 11):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"file_path": "a"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "word " * 800}
        messages.append(Message(role="assistant", content=[call], api_message_id=f"m{number}", seq=2 * number))
        messages.append(Message(role="user", content=[result], seq=2 * number + 1))
    run = Run(history=tuple(messages))
    run.summarizer.counted_tokens = 15_000
    paid = await run(plan(estimated_tokens=14_000, window_tokens=30_000))
    assert len(run.summarizer.requests[0].messages) == 21
    assert (paid.dropped_rounds, paid.dropped_tokens > 3_000) == (0, True)


async def test_a_model_that_writes_less_than_we_ask_for_is_asked_for_less() -> None:
    run = Run(ApiError(output_limit_tokens=8_192), summary_reply())
    await run(plan())
    assert [request.max_output_tokens for request in run.summarizer.requests] == [20_000, 8_192]


async def test_a_count_that_is_refused_as_too_long_is_a_refusal_to_cut_by() -> None:
    run = Run()
    run.summarizer.counted_tokens = TOO_LONG
    paid = await run(plan(estimated_tokens=14_000, window_tokens=30_000))
    assert (len(run.summarizer.requests), paid.ptl_attempts) == (1, 1)
    assert paid.dropped_rounds > 0


async def test_other_trouble_with_the_count_leaves_the_question_to_the_call() -> None:
    run = Run()
    run.summarizer.counted_tokens = Overloaded()
    assert (await run(plan(estimated_tokens=14_000, window_tokens=30_000))).dropped_rounds == 0
    run.summarizer.counted_tokens = AuthError()
    with pytest.raises(AuthError):
        await run(plan(estimated_tokens=14_000, window_tokens=30_000))


async def test_a_count_that_fits_changes_nothing() -> None:
    run = Run()
    run.summarizer.counted_tokens = 9_000
    paid = await run(plan(estimated_tokens=14_000, window_tokens=30_000))
    assert paid.dropped_rounds == 0


async def test_a_provider_that_does_not_count_is_simply_asked() -> None:
    run = Run()
    assert (await run(plan(estimated_tokens=14_000, window_tokens=30_000))).dropped_rounds == 0


async def test_a_refusal_that_the_producer_met_cuts_the_first_request_where_nobody_counts() -> None:
    """Each estimated token is really three and 10,000 fit: a third of that by our estimate may stay, three rounds."""
    run = Run()
    paid = await run(plan(estimated_tokens=10_800, window_tokens=30_000, refused_ratio=3.0))
    assert (len(run.summarizer.requests), paid.ptl_attempts) == (1, 0)
    sent = run.summarizer.requests[0].messages
    assert 10_000 / 3 - 1_100 <= estimate_messages(sent) <= 10_000 / 3
    assert (sent[-1].seq, paid.dropped_messages) == (24, 25 - len(sent))  # the marker is one of those that were sent


async def test_the_providers_own_count_wins_over_the_refusal_that_the_producer_met() -> None:
    run = Run()
    run.summarizer.counted_tokens = 9_000
    assert (await run(plan(estimated_tokens=10_800, window_tokens=30_000, refused_ratio=3.0))).dropped_rounds == 0


async def test_a_refusal_makes_us_ask_for_a_count_that_our_estimate_would_not_ask_for() -> None:
    """5,000 estimated tokens are half of the room; the session was really four times what we estimate."""
    run = Run()
    run.summarizer.counted_tokens = 20_000
    assert (await run(plan(estimated_tokens=5_000, window_tokens=30_000, refused_ratio=4.0))).dropped_rounds > 0
    assert (await run(plan(estimated_tokens=5_000, window_tokens=30_000))).dropped_rounds == 0


async def test_a_filled_window_is_a_prompt_that_was_too_long() -> None:
    run = Run(summary_reply(stop_reason="model_context_window_exceeded"), summary_reply())
    assert (await run(plan())).ptl_attempts == 1


async def test_a_tool_call_instead_of_a_shared_summary_falls_back_to_fresh() -> None:
    run = Run(summary_reply(stop_reason="tool_use"), summary_reply())
    paid = await run(plan("shared_prefix"))
    assert [request.kind for request in run.summarizer.requests] == ["shared_prefix", "fresh"]
    assert paid.strategy == "fresh"


async def test_a_prefix_that_cannot_be_shared_goes_fresh() -> None:
    run = Run(PrefixNotShareable("needs repair: blank"), summary_reply())
    assert (await run(plan("shared_prefix"))).strategy == "fresh"


async def test_a_truncated_summary_is_asked_for_shorter_and_then_given_up() -> None:
    run = Run(summary_reply(stop_reason="max_tokens"))
    with pytest.raises(SummaryTruncated):
        await run(plan())
    assert [request.user_prompt for request in run.summarizer.requests] == ["sum up", "shorter"]


async def test_no_summary_twice_is_final() -> None:
    run = Run(summary_reply(stop_reason="tool_use"))
    with pytest.raises(NoSummary):
        await run(plan())
    assert run.recorder.calls == 2
    assert run.recorder.saved == []


async def test_a_spent_budget_ends_it_without_false_cuts() -> None:
    class Spent(MemoryRecorder):
        async def before_call(self) -> None:
            raise PromptTooLong("The job used up its model calls.")

    run = Run()
    run.recorder = Spent()
    with pytest.raises(PromptTooLong):
        await run(plan())
    assert run.recorder.names() == []


async def test_other_errors_of_the_provider_go_straight_out() -> None:
    run = Run(Overloaded())
    with pytest.raises(Overloaded):
        await run(plan())


async def test_the_history_is_loaded_for_the_call_and_not_held() -> None:
    """Nothing but the summarizer's own argument may refer to the messages while the model writes."""
    run = Run()
    await run(plan())
    assert run.history.loads == 1


async def test_progress_grows_with_the_text_and_stays_below_eighty_percent() -> None:
    class Chatty(ScriptedSummarizer):
        async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
            for count in range(500, 40_000, 500):
                progress.characters(count)
            return await super().summarize(request, progress)

    run = Run()
    run.summarizer = Chatty()
    await run(plan())
    percents = [percent for _, percent in run.recorder.steps]
    assert percents == sorted(percents)
    assert percents[0] == 20
    assert percents[-1] == 80


async def test_a_degraded_reply_is_named_extractive_and_costs_nothing() -> None:
    good = summary_reply()
    local = SummaryReply(text=good.text, stop_reason="end_turn", usage=good.usage, model="extractive", degraded=True)
    paid = await Run(local)(plan())
    assert (paid.strategy, paid.degraded, paid.cost_usd) == ("extractive", True, None)
