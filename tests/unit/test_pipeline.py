"""The steps of one full compaction, over fakes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import pytest

from compaction.core.boundary import Boundary
from compaction.core.messages import Message
from compaction.core.results import CompactionResult, Order, SessionFacts
from compaction.core.thresholds import thresholds
from compaction.errors import AuthError, HookRejected, JobError, NoSummary, NotEffective, Overloaded
from compaction.pipeline import HELD_CHARACTERS, compact_conversation
from compaction.ports import HookNote, PreCompactAnswer, SessionStartAnswer, SummaryReply
from compaction.task import Ports
from tests.unit.fakes import (
    MemoryHistory,
    MemoryRecorder,
    ScriptedHooks,
    ScriptedSummarizer,
    a_task,
    flat_price,
    summary_reply,
    talk,
)

pytestmark = pytest.mark.anyio


@dataclass(slots=True)
class Run:
    """One compaction over fakes; what it needs can be changed before it starts."""

    script: list[SummaryReply | JobError] = field(default_factory=list)
    messages: Sequence[Message] = field(default_factory=lambda: talk(12))
    hooks: ScriptedHooks = field(default_factory=ScriptedHooks)
    recorder: MemoryRecorder = field(default_factory=MemoryRecorder)
    extractive: ScriptedSummarizer = field(default_factory=lambda: ScriptedSummarizer(name="extractive"))
    last_resort: bool = False
    order: Order = field(default_factory=lambda: Order(job_id="job-1", trigger="manual"))
    settings: dict[str, object] = field(default_factory=dict)
    task_fields: dict[str, object] = field(default_factory=dict)
    summarizer: ScriptedSummarizer = field(default_factory=ScriptedSummarizer)
    loads: int = 0

    async def __call__(self) -> CompactionResult:
        """The result."""
        self.summarizer.script = list(self.script)
        facts = SessionFacts(session_id="s1", tenant="t1", model="claude-haiku-4-5", settings=self.settings)
        history = MemoryHistory(self.messages)
        ports = Ports(
            history=history,
            summarizer=self.summarizer,
            extractive=self.extractive,
            recorder=self.recorder,
            hooks=self.hooks,
            price=flat_price,
            last_resort=self.last_resort,
        )
        task = a_task(self.messages, self.order, facts, **self.task_fields)
        try:
            return await compact_conversation(task, ports)
        finally:
            self.loads = history.loads


def open_call() -> tuple[Message, ...]:
    """A conversation whose last tool call waits for its result."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "Ask", "input": {}}
    return (*talk(12), Message(role="assistant", content=[call], seq=25, api_message_id="msg_open"))


async def test_the_result_stands_in_the_one_order() -> None:
    """[boundary, *summary, *kept, *attachments, *hook messages], DESIGN §3."""
    hook_message = Message(role="user", content="the branch is main", is_meta=True)
    run = Run(messages=open_call(), hooks=ScriptedHooks(after=SessionStartAnswer(messages=(hook_message,))))
    result = await run()
    boundary, summary, kept, hook = result.messages
    assert boundary.is_boundary
    assert summary.is_compact_summary
    assert kept.api_message_id == "msg_open"
    assert (hook.content, hook.is_meta) == ("the branch is main", True)
    assert hook.uuid is not None


async def test_the_boundary_tells_the_size_before_by_the_estimator_of_the_size_after() -> None:
    """Whatever the provider counted: what was accepted as smaller shows as smaller."""
    run = Run(messages=open_call())
    result = await run()
    facts = result.messages[0].metadata
    assert facts is not None
    assert facts["estimated_tokens"] == result.boundary.estimated_tokens
    assert isinstance(facts["estimated_tokens"], int)
    assert facts["estimated_tokens"] > result.post_tokens


async def test_the_boundary_says_how_and_through_where() -> None:
    result = await Run()()
    metadata = result.boundary.metadata()
    assert metadata["kind"] == "compact_boundary"
    assert (metadata["trigger"], metadata["strategy"], metadata["covers_through_seq"]) == ("manual", "fresh", 24)
    assert metadata["pre_tokens"] == result.pre_tokens > result.post_tokens


async def test_the_same_job_gives_the_same_uuids_again() -> None:
    """A repeated commit after a crash must not make other messages."""
    first, second = await Run()(), await Run()()
    assert [message.uuid for message in first.messages] == [message.uuid for message in second.messages]


async def test_a_saved_summary_is_used_without_a_call() -> None:
    first = Run()
    await first()
    again = Run(task_fields={"paid": first.recorder.saved[0], "attempt": 2})
    result = await again()
    assert again.summarizer.requests == []
    assert result.usage.output_tokens == 900
    assert dict(again.recorder.events)["tengu_compact"]["saved_summary_reused"] is True


async def test_the_costs_of_the_calls_stand_on_the_result() -> None:
    result = await Run()()
    assert result.cost_usd == Decimal("0.0409")
    assert result.model == "claude-haiku-4-5"


async def test_instructions_of_order_session_and_hook_reach_the_prompt() -> None:
    run = Run(
        order=Order(job_id="job-1", trigger="manual", instructions="Keep the table names."),
        settings={"instructions": "Answer in French."},
        hooks=ScriptedHooks(before=PreCompactAnswer(instructions="Mention ticket 7.")),
    )
    await run()
    prompt = run.summarizer.requests[0].user_prompt
    for wanted in ("Keep the table names.", "Answer in French.", "Mention ticket 7."):
        assert wanted in prompt


async def test_settings_of_a_wrong_type_are_no_instructions() -> None:
    run = Run(settings={"instructions": 7})
    await run()
    assert run.summarizer.requests[0].instructions is None


async def test_a_veto_ends_the_job_before_any_call() -> None:
    run = Run(hooks=ScriptedHooks(before=PreCompactAnswer(veto="a deploy is under way")))
    with pytest.raises(HookRejected, match="a deploy is under way"):
        await run()
    assert run.summarizer.requests == []


async def test_notes_of_hooks_stand_on_the_result() -> None:
    note = HookNote(name="branch", event="session_start", ok=False, seconds=5.0, problem="timeout")
    result = await Run(hooks=ScriptedHooks(after=SessionStartAnswer(notes=(note,))))()
    assert result.hook_results == (
        {"name": "branch", "event": "session_start", "ok": False, "seconds": 5.0, "problem": "timeout"},
    )


async def test_hooks_that_failed_are_told_even_when_another_one_vetoes() -> None:
    note = HookNote(name="slow", event="pre_compact", ok=False, seconds=5.0, problem="no answer in time")
    run = Run(hooks=ScriptedHooks(before=PreCompactAnswer(veto="hold", notes=(note,))))
    with pytest.raises(HookRejected):
        await run()
    assert dict(run.recorder.events)["hooks_failed"]["hooks"][0]["name"] == "slow"


async def test_the_steps_of_the_clean_up_are_named() -> None:
    run = Run()
    await run()
    assert "micro_compaction" in dict(run.recorder.events)["tengu_compact"]["cleanup"]


async def test_a_summary_as_long_as_what_it_replaces_is_rejected() -> None:
    run = Run(messages=talk(2, characters=40))
    with pytest.raises(NotEffective):
        await run()
    assert "tengu_compact" not in run.recorder.names()


async def test_an_earlier_summary_is_handed_on_to_be_updated() -> None:
    first = await Run()()
    messages = (*first.messages, *talk(12))
    again = Run(messages=messages, order=Order(job_id="job-2", trigger="manual"))
    result = await again()
    request = again.summarizer.requests[0]
    assert request.prior_summary is not None
    assert request.prior_summary.startswith("1. Primary Request")
    assert sum(message.is_compact_summary for message in result.messages) == 1


async def test_pinned_constraints_of_an_earlier_compaction_are_stated_again() -> None:
    boundary = Boundary(
        uuid="b",
        trigger="auto",
        strategy="fresh",
        pre_tokens=1,
        covers_through_seq=0,
        job_id="j",
        pinned=("never push",),
    )
    run = Run(messages=(boundary.message(), *talk(12)))
    result = await run()
    assert "never push" in run.summarizer.requests[0].user_prompt
    assert result.boundary.pinned == ("never push",)
    assert "never push" in str(result.summary[0].content)


async def test_a_boundary_without_a_list_of_constraints_is_taken_as_it_is() -> None:
    other = Message(role="system", content="", metadata={"kind": "compact_boundary", "pinned": "odd"})
    assert (await Run(messages=(other, *talk(12)))()).boundary.pinned == ()


async def test_the_last_resort_steps_in_when_the_model_gives_no_summary() -> None:
    run = Run(script=[summary_reply(stop_reason="tool_use")], last_resort=True)
    await run()
    assert len(run.extractive.requests) == 1
    assert dict(run.recorder.events)["last_resort"] == {"code": "no_summary", "summarizer": "extractive"}


async def test_the_last_resort_waits_while_the_job_can_still_be_tried_again() -> None:
    run = Run(script=[Overloaded()], last_resort=True)
    with pytest.raises(Overloaded):
        await run()
    final = Run(script=[Overloaded()], last_resort=True, task_fields={"is_last_attempt": True})
    assert (await final()).summary


async def test_the_last_resort_is_no_way_around_a_paused_provider() -> None:
    run = Run(script=[AuthError()], last_resort=True)
    with pytest.raises(AuthError):
        await run()


async def test_without_a_fallback_the_error_goes_out() -> None:
    with pytest.raises(NoSummary):
        await Run(script=[summary_reply(stop_reason="tool_use")])()


async def test_the_event_tells_numbers_and_no_content() -> None:
    run = Run(order=Order(job_id="job-1", trigger="auto"))
    result = await run()
    told = dict(run.recorder.events)["tengu_compact"]
    assert (told["auto"], told["pre_tokens"], told["strategy"]) == (True, result.pre_tokens, "fresh")
    assert "question 1" not in str(run.recorder.events)


async def test_a_session_that_stays_over_its_threshold_is_told_so() -> None:
    run = Run(task_fields={"thresholds": thresholds(300, 0)})
    assert (await run()).under_threshold is False


async def test_a_history_is_read_once_when_what_is_needed_after_the_call_is_little() -> None:
    run = Run()
    await run()
    assert run.loads == 1


async def test_a_history_is_read_again_when_too_much_of_it_would_be_held_during_the_call() -> None:
    run = Run(messages=talk(4, characters=HELD_CHARACTERS // 3))
    await run()
    assert run.loads == 3  # before the count of the long request, before the call, and after it
