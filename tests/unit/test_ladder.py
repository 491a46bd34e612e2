"""The ladder of an automatic compaction, light to heavy, and the light ways of the other triggers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from compaction.auto import Switches, run
from compaction.core import session_memory, tokens
from compaction.core.jobs import Scope, Trigger
from compaction.core.messages import Message, Usage
from compaction.core.results import CompactionResult, Order, Outcome, SessionFacts, Skipped
from compaction.core.session_state import Note, SessionState
from compaction.core.thresholds import thresholds
from compaction.errors import InvalidSession, NotEffective, PromptTooLong
from compaction.task import Ports
from tests.unit.fakes import MemoryHistory, MemoryRecorder, ScriptedHooks, ScriptedSummarizer, a_task, flat_price, talk

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
WINDOW = thresholds(60_000, 64_000)  # effective 40,000; auto-compact at 30,000: half of a small window is the least
MEMORY = Note("session", "# Session memory\n- invoices move to the new service\n- never push to origin\n" * 4)


def reading(rounds: int, *, minutes_ago: float, tokens_each: int = 2_000) -> tuple[Message, ...]:
    """A request and rounds of one Read each; the last answer is so old. Prose counts four characters a token."""
    at = (NOW - timedelta(minutes=minutes_ago)).isoformat()
    messages = [Message(role="user", content="Read all of it.", seq=1)]
    for number in range(1, rounds + 1):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {"file_path": f"{number}.txt"}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "word " * (tokens_each * 4 // 5)}
        ask = Message(role="assistant", content=[call], api_message_id=f"msg_{number}", created_at=at, seq=2 * number)
        messages += [ask, Message(role="user", content=[result], seq=2 * number + 1)]
    return tuple(messages)


class World:
    """One session and one order on it."""

    def __init__(self, messages: Sequence[Message], trigger: Trigger = "auto", **order: object) -> None:
        self.history = MemoryHistory(messages)
        self.recorder = MemoryRecorder()
        self.summarizer = ScriptedSummarizer()
        self.extractive = ScriptedSummarizer(name="extractive")
        self.hooks = ScriptedHooks()
        self.order = Order(job_id="job-1", trigger=trigger, **order)  # type: ignore[arg-type]  # a test's shorthand
        self.facts = SessionFacts(session_id="s", tenant="t", model="claude-haiku-4-5")

    async def run(self, **task: object) -> Outcome:
        """The outcome."""
        ports = Ports(
            history=self.history,
            summarizer=self.summarizer,
            extractive=self.extractive,
            recorder=self.recorder,
            hooks=self.hooks,
            price=flat_price,
        )
        attempt = a_task(self.history.messages, self.order, self.facts, **({"now": NOW, "thresholds": WINDOW} | task))
        return await run(attempt, Switches(), ports)

    async def result(self, **task: object) -> CompactionResult:
        """The outcome, which must be a result."""
        outcome = await self.run(**task)
        assert isinstance(outcome, CompactionResult), outcome
        return outcome

    @property
    def calls(self) -> int:
        """How often a model was asked."""
        return len(self.summarizer.requests)


async def test_a_cold_session_loses_its_old_results_and_needs_no_model() -> None:
    """20 results of 2,000 tokens each; all but three go."""
    world = World(reading(20, minutes_ago=6))
    result = await world.result()
    assert (result.strategy, result.summary, world.calls) == ("microcompact", (), 0)
    assert len(result.cleared_ids) == 17
    assert len(result.kept) == 41
    assert result.post_tokens < WINDOW.auto_compact <= result.pre_tokens
    assert world.recorder.names() == ["microcompact", "tengu_compact"]
    assert result.boundary.preserved is not None
    assert result.boundary.preserved.messages == 41


async def test_a_warm_session_gets_an_edit_that_the_api_carries_out() -> None:
    """More than twenty results can be cleared: the history stays as it is, the edit goes with the next request."""
    world = World(reading(24, minutes_ago=1))
    result = await world.result()
    assert (result.strategy, world.calls) == ("microcompact", 0)
    assert result.context_management is not None
    assert result.kept == world.history.messages
    told = dict(world.recorder.events)["tengu_cached_microcompact"]
    assert told["cleared_tool_ids"] == list(result.cleared_ids)


async def test_results_that_an_edit_cleared_before_are_not_cleared_again() -> None:
    world = World(reading(24, minutes_ago=1))
    first = await world.result()
    again = World(reading(24, minutes_ago=1))
    result = await again.result(cleared_ids=frozenset(first.cleared_ids))
    assert (result.strategy, again.calls) == ("shared_prefix", 1)


async def test_an_edit_that_does_not_bring_the_session_under_its_threshold_is_not_returned() -> None:
    warm = (NOW - timedelta(minutes=1)).isoformat()
    last = Message(role="assistant", content="so " * 50_000, created_at=warm, api_message_id="msg_last", seq=99)
    world = World((*reading(24, minutes_ago=1), last, Message(role="user", content="Go on.", seq=100)))
    assert (await world.result()).context_management is None
    assert "tengu_cached_microcompact" not in world.recorder.names()


async def test_a_step_that_does_not_bring_the_session_under_its_threshold_is_no_end() -> None:
    """Long answers remain when the results are gone."""
    answers = talk(30, characters=6_000)
    old = (NOW - timedelta(minutes=9)).isoformat()
    last = Message(role="assistant", content="done", created_at=old, api_message_id="msg_last", seq=99)
    world = World((*reading(5, minutes_ago=9), *answers, last))
    result = await world.result()
    assert (result.strategy, world.calls) == ("fresh", 1)
    assert "microcompact" not in world.recorder.names()


async def test_the_sessions_own_memory_stands_for_a_summary() -> None:
    world = World(talk(60, characters=2_000))
    result = await world.result(state=SessionState(memory=(MEMORY,)))
    assert (result.strategy, world.calls) == ("session_memory", 0)
    assert "invoices move to the new service" in str(result.summary[0].content)
    assert result.kept
    assert result.kept[-1].content == world.history.messages[-1].content
    assert result.under_threshold


async def test_a_memory_that_leaves_the_session_over_its_threshold_falls_through() -> None:
    """The kept tail alone is as large as this threshold."""
    world = World(talk(60, characters=2_000))
    result = await world.result(state=SessionState(memory=(MEMORY,)), thresholds=thresholds(12_000, 4_000))
    assert result.strategy == "fresh"


async def test_a_memory_as_long_as_what_it_replaces_leaves_the_work_to_a_model() -> None:
    """Without its wrapping the memory is a little smaller than the replaced part, with it larger. No hook is asked."""
    messages = talk(10, characters=4_000)
    replaced = session_memory.compact(messages, MEMORY.text)
    assert replaced is not None
    words = (tokens.estimate_messages(replaced.replaced) - 2) * 4 // 5  # prose: four characters a token
    note = Note("session", "word " * words)
    world = World(messages, "manual")
    state = SessionState(memory=(note,))
    assert (await world.result(state=state, thresholds=thresholds(200_000, 64_000))).strategy == "fresh"
    assert (world.calls, world.hooks.asked) == (1, ["pre_compact", "session_start"])


async def test_an_automatic_order_for_a_part_or_a_strategy_takes_no_other_way() -> None:
    state = SessionState(memory=(MEMORY,))
    part = World(reading(20, minutes_ago=6), scope=Scope("from", None))
    with pytest.raises(InvalidSession):
        await part.run(state=state)
    named = World(talk(60, characters=2_000), strategy="microcompact")
    assert await named.run(state=state) == Skipped("nothing_to_compact")
    memory = World(talk(60, characters=2_000), strategy="session_memory")
    assert (await memory.result(state=state)).strategy == "session_memory"


async def test_the_size_after_is_judged_like_the_size_before() -> None:
    """Usage says two real tokens per estimated one; what looks small enough by estimate alone is not."""
    messages = list(talk(12, characters=8_000))
    per_turn = tokens.estimate_messages(messages[:2])
    for place in range(1, len(messages), 2):
        prompt = 2 * per_turn * (place // 2 + 1)
        messages[place] = replace(messages[place], usage=Usage(input_tokens=prompt, output_tokens=1))
    plain = await World(talk(12, characters=8_000), "manual").result()
    learned = await World(messages, "manual").result()
    assert learned.post_tokens > 1.5 * plain.post_tokens


async def test_system_prompt_and_tools_over_the_threshold_cost_no_call() -> None:
    world = World(talk(60, characters=2_000))
    world.facts = SessionFacts(session_id="s", tenant="t", model="claude-haiku-4-5", system="rule " * 40_000)
    with pytest.raises(NotEffective, match="System prompt and tools"):
        await world.run()
    assert world.calls == 0


async def test_a_manual_job_whose_overhead_fills_the_window_costs_no_call() -> None:
    """Over the threshold it may still help a little; over the window nothing can."""
    world = World(talk(60, characters=2_000), "manual")
    world.facts = SessionFacts(session_id="s", tenant="t", model="claude-haiku-4-5", system="rule " * 40_000)
    with pytest.raises(NotEffective):
        await world.run()
    assert world.calls == 0


async def test_a_small_window_gives_a_quarter_of_itself_to_the_summary() -> None:
    world = World(talk(12), "manual")
    await world.result(window_tokens=8_000, max_output_tokens=8_000)
    assert world.summarizer.requests[0].max_output_tokens == 2_000


async def test_a_refusal_that_could_not_be_cut_tells_its_numbers() -> None:
    world = World(talk(12), "manual")
    world.summarizer.script = [PromptTooLong(gap=500, actual=1_500, limit=1_000)]
    with pytest.raises(PromptTooLong):
        await world.run()
    told = dict(world.recorder.events)["tengu_compact_failed"]
    assert (told["unit"], told["gap"], told["lower_bound"]) == ("tokens", 500, False)


async def test_a_session_too_big_in_bytes_is_compacted_below_its_threshold() -> None:
    world = World(talk(4))
    assert (await world.result(limit_bytes=1_000)).strategy == "fresh"


async def test_an_order_that_names_its_strategy_skips_the_ladder() -> None:
    world = World(reading(20, minutes_ago=6), strategy="fresh")
    assert (await world.result()).strategy == "fresh"


async def test_the_extractive_strategy_asks_no_model() -> None:
    world = World(talk(40), "manual", strategy="extractive")
    await world.result()
    assert (world.calls, len(world.extractive.requests)) == (0, 1)


async def test_a_manual_job_takes_the_memory_unless_it_was_given_instructions() -> None:
    state = SessionState(memory=(MEMORY,))
    assert (await World(talk(60), "manual").result(state=state)).strategy == "session_memory"
    world = World(talk(60), "manual", instructions="Keep the numbers.")
    assert (await world.result(state=state)).strategy == "fresh"


async def test_a_reactive_job_is_a_full_compaction_at_once() -> None:
    world = World(talk(60), "reactive")
    assert (await world.result(state=SessionState(memory=(MEMORY,)))).strategy == "fresh"


async def test_the_gap_that_the_producer_learned_cuts_the_first_request() -> None:
    """The session took 200,000 + 100,000 tokens by the provider's count; 180,000 fit, so two fifths go at once."""
    world = World(talk(100), "reactive", token_gap=100_000)
    result = await world.result()
    (request,) = world.summarizer.requests
    assert 35 <= result.dropped.rounds <= 45
    assert (request.kind, result.ptl_attempts) == ("fresh", 0)
    assert request.messages[-1] is world.history.messages[-1]


async def test_without_a_gap_or_with_one_of_nothing_the_same_session_is_sent_whole() -> None:
    for gap in (None, 0):
        world = World(talk(100), "reactive", token_gap=gap)
        assert (await world.result()).dropped.rounds == 0


async def test_a_gap_says_that_a_warm_cache_cannot_be_shared() -> None:
    messages = talk(100)
    last = replace(messages[-1], created_at=NOW.isoformat())
    for gap, reason in ((None, "shared"), (1, "no_room")):
        world = World((*messages[:-1], last), "reactive", token_gap=gap)
        await world.run()
        assert ("request_kind", {"reason": reason}) in world.recorder.events


async def test_the_summarizer_without_a_model_reads_everything_whatever_the_gap() -> None:
    world = World(talk(100), "reactive", token_gap=100_000, strategy="extractive")
    assert (await world.result()).dropped.rounds == 0
    assert len(world.extractive.requests[0].messages) == 200


async def test_memory_by_name_without_a_memory_is_nothing_to_do() -> None:
    assert await World(talk(60), "manual", strategy="session_memory").run() == Skipped("nothing_to_compact")


async def test_clearing_by_name_does_not_ask_how_old_the_results_are() -> None:
    world = World(reading(10, minutes_ago=0), "manual", strategy="microcompact")
    result = await world.result()
    assert (result.strategy, len(result.cleared_ids)) == ("microcompact", 7)
    assert await World(talk(10), "manual", strategy="microcompact").run() == Skipped("nothing_to_compact")


async def test_a_summary_that_was_paid_for_is_used_whatever_the_ladder_says() -> None:
    first = World(talk(60))
    await first.result()
    again = World(reading(20, minutes_ago=6))
    result = await again.result(paid=first.recorder.saved[0], attempt=2)
    assert (result.strategy, again.calls) == ("fresh", 0)
    manual = World(talk(60), "manual")
    assert (await manual.result(paid=first.recorder.saved[0])).strategy == "fresh"


async def test_a_warm_cache_is_shared_and_the_reason_is_told() -> None:
    started = (NOW - timedelta(minutes=1)).isoformat()
    world = World(talk(40), "manual")
    request = {"last_request_started_at": started}
    world.facts = SessionFacts(session_id="s", tenant="t", model="claude-haiku-4-5", system="Be kind.", request=request)
    result = await world.result()
    assert (world.summarizer.requests[0].kind, result.strategy) == ("shared_prefix", "shared_prefix")
    assert world.summarizer.requests[0].session_system == "Be kind."
    assert dict(world.recorder.events)["request_kind"] == {"reason": "shared"}


async def test_up_to_summarises_the_prefix_and_keeps_what_follows() -> None:
    messages = [
        Message(role=message.role, content=message.content, uuid=f"m-{place}", api_message_id=message.api_message_id)
        for place, message in enumerate(talk(12), 1)
    ]
    world = World(messages, "manual", scope=Scope("up_to", "m-16"))
    result = await world.result()
    assert [message.uuid for message in result.kept] == [f"m-{place}" for place in range(17, 25)]
    assert (result.boundary.scope, result.boundary.preserved is not None) == ("up_to", True)
    assert "Work Completed" in world.summarizer.requests[0].user_prompt


async def test_from_summarises_the_recent_part_and_says_that_the_rest_is_older() -> None:
    messages = [
        Message(role=message.role, content=message.content, uuid=f"m-{place}", api_message_id=message.api_message_id)
        for place, message in enumerate(talk(12), 1)
    ]
    world = World(messages, "manual", scope=Scope("from", "m-17"))
    result = await world.result()
    assert [message.uuid for message in result.kept] == [f"m-{place}" for place in range(1, 17)]
    assert len(world.summarizer.requests[0].messages) == 8
    again = World((*result.messages, *talk(2)), "manual")
    await again.result()
    told = [message.uuid for message in again.summarizer.requests[0].messages]
    assert told[:17] == [*(f"m-{place}" for place in range(1, 17)), result.summary[0].uuid]  # as it happened


async def test_a_scope_whose_messages_must_all_stay_gains_nothing() -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "Ask", "input": {}}
    last = Message(role="assistant", content=[call], uuid="open", api_message_id="msg_open", seq=99)
    world = World((*talk(12), last), "manual", scope=Scope("from", "open"))
    with pytest.raises(NotEffective, match="must stay"):
        await world.run()


async def test_an_attachment_that_cannot_be_built_is_told_and_left_out() -> None:
    broken = SessionState(skills=(None,))  # type: ignore[arg-type]  # a fault of ours, as a builder would meet it
    world = World(talk(40), "manual")
    assert (await world.result(state=broken)).attachments == ()
    assert dict(world.recorder.events)["attachments_failed"] == {"kinds": ["skills"]}


async def test_a_scope_that_names_no_message_is_told_by_its_own_event() -> None:
    world = World(talk(12), "manual", scope=Scope("up_to", "nobody"))
    with pytest.raises(InvalidSession):
        await world.run()
    assert world.recorder.names() == ["tengu_partial_compact_failed"]


async def test_a_second_compaction_knows_that_it_is_one() -> None:
    first = await World(talk(40), "manual").result()
    world = World((*first.messages, *talk(40)), "manual", instructions="again")
    await world.result()
    told = dict(world.recorder.events)["tengu_compact"]
    assert (told["is_recompaction"], told["chain"], told["turns_since_last"]) == (True, 2, 40)
