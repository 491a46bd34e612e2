"""What a whole compaction promises for any history, order and mood of the model; judged by rules written apart from it.

Each example runs one job through `auto.run` with a model that builds the very bodies that would be sent, and often a
second job on what the first one made.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction.auto import Switches, run
from compaction.core import tokens, wire
from compaction.core.jobs import Scope, ScopeKind, Trigger
from compaction.core.messages import Message, conversation
from compaction.core.rebuilt import is_rebuilt
from compaction.core.results import CompactionResult, Order, SessionFacts
from compaction.core.session_state import Note, SessionState
from compaction.core.thresholds import thresholds
from compaction.errors import JobError, PromptTooLong
from compaction.ports import Progress, SessionStartAnswer, SummaryReply, SummaryRequest
from compaction.task import Ports
from tests.unit.core.rules import broken_rules, open_calls
from tests.unit.core.strategies import clean_sessions, histories, live_views
from tests.unit.fakes import (
    MemoryHistory,
    MemoryRecorder,
    ScriptedHooks,
    ScriptedSummarizer,
    a_task,
    flat_price,
    summary_reply,
)

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
KEPT_THINKING = "thinking was kept, though something before it may have changed"
STATE = SessionState(
    memory=(Note("session", "# Memory\n- the invoices move to the new service, one customer after the other\n"),),
    plans=(Note("plan", "1. move them 2. test them"),),
    files=(Note("a.py", "def f(x):\n    return x\n"),),
)
MOST = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass(slots=True)
class BuildingSummarizer(ScriptedSummarizer):
    """A scripted model that makes the body of each request as the real adapter does, and keeps it."""

    bodies: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        """The next step of the script, after the body was built. Raises PrefixNotShareable as building it does."""
        body = wire.shared_prefix_body(request)[0] if request.kind == "shared_prefix" else wire.fresh_body(request)
        self.bodies.append((request.kind, json.loads(body)))
        return await ScriptedSummarizer.summarize(self, request, progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One order on one session, and how the model behaves."""

    messages: tuple[Message, ...]
    order: Order
    script: tuple[SummaryReply | JobError, ...]
    counted_tokens: int | None
    window_tokens: int
    state: SessionState
    warm: bool
    says: tuple[Message, ...]  # by SessionStart hooks


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of it; `result` is None for a skip and for a failure."""

    job: Job
    result: CompactionResult | None
    model: BuildingSummarizer
    recorder: MemoryRecorder


def ran(job: Job) -> Ran:
    """The job, run to its end."""
    model = BuildingSummarizer(list(job.script), counted_tokens=job.counted_tokens)
    recorder = MemoryRecorder()
    started = NOW - (timedelta(seconds=30) if job.warm else timedelta(hours=2))
    facts = SessionFacts(
        session_id="s",
        tenant="t",
        model="claude-haiku-4-5",
        request={"last_request_started_at": started.isoformat()},
    )
    ports = Ports(
        history=MemoryHistory(job.messages),
        summarizer=model,
        extractive=ScriptedSummarizer(name="extractive"),
        recorder=recorder,
        hooks=ScriptedHooks(after=SessionStartAnswer(messages=job.says)),
        price=flat_price,
    )
    task = a_task(
        job.messages,
        job.order,
        facts,
        now=NOW,
        window_tokens=job.window_tokens,
        session_window_tokens=job.window_tokens,
        room_tokens=job.window_tokens,
        min_cacheable_tokens=1,
        thresholds=thresholds(job.window_tokens, 2_000),
        max_output_tokens=2_000,
        state=job.state,
    )
    try:
        outcome = asyncio.run(run(task, Switches(), ports))
    except JobError:
        outcome = None
    return Ran(job, outcome if isinstance(outcome, CompactionResult) else None, model, recorder)


@st.composite
def padded(draw: st.DrawFn, parts: st.SearchStrategy[tuple[Message, ...]]) -> tuple[Message, ...]:
    """A history in which some user messages and results are long, so that a summary is worth its price.

    Often an agent has read a few files before, an hour ago, so that there are results to clear.
    """
    messages = [message for number in range(draw(st.sampled_from([0, 0, 3, 12, 40]))) for message in _reading(number)]
    for message in draw(parts):
        words = draw(st.sampled_from([0, 400, 2_000]))
        messages.append(_longer(message, "word " * words) if words else message)
    return tuple(messages)


def _reading(number: int) -> list[Message]:
    call = {"type": "tool_use", "id": f"toolu_read_{number}", "name": "Read", "input": {"file_path": f"{number}.py"}}
    found = {"type": "tool_result", "tool_use_id": call["id"], "content": "line " * 400}
    asked = f"Read file {number}. Never touch the public API."
    return [
        Message(role="user", content=asked, uuid=f"r-{number}-1"),
        Message(
            role="assistant",
            content=[call],
            uuid=f"r-{number}-2",
            api_message_id=f"msg_read_{number}",
            created_at=(NOW - timedelta(hours=1)).isoformat(),
        ),
        Message(role="user", content=[found], uuid=f"r-{number}-3"),
    ]


def _longer(message: Message, text: str) -> Message:
    if isinstance(message.content, str):
        return replace(message, content=message.content + text)
    blocks = [
        {**block, "content": text} if block["type"] == "tool_result" and "content" in block else block
        for block in message.content
    ]
    return replace(message, content=[*blocks, {"type": "text", "text": text}] if message.role == "user" else blocks)


replies = st.sampled_from([summary_reply(), summary_reply(" "), summary_reply(stop_reason="tool_use")])
refusals = st.builds(
    PromptTooLong,
    unit=st.sampled_from(["tokens", "tokens", "bytes"]),
    gap=st.none() | st.integers(1, 5_000),
    actual=st.none() | st.integers(1_000, 20_000),
    limit=st.none() | st.integers(1_000, 20_000),
)
scripts = st.lists(st.one_of(refusals, refusals, replies), max_size=4).map(lambda some: (*some, summary_reply()))
hook_messages = st.sampled_from([(), (Message(role="user", content="The build is green."),)])


@st.composite
def jobs(draw: st.DrawFn, parts: st.SearchStrategy[tuple[Message, ...]]) -> Job:
    """Any job: each trigger, each scope, with and without memory, a warm cache, counts, gaps, refusals, hooks."""
    messages = draw(live_views(padded(parts)))
    named = [message.uuid for message in conversation(messages) if message.uuid is not None]
    kinds: list[ScopeKind] = ["full", "full", "up_to", "from"] if named else ["full"]
    kind = draw(st.sampled_from(kinds))
    triggers: list[Trigger] = ["auto", "manual", "reactive", "bulk"]
    trigger = draw(st.sampled_from(triggers))
    strategies = [None] * 8 + ["microcompact", "session_memory", "shared_prefix", "fresh"]
    return Job(
        messages=messages,
        order=Order(
            job_id="job-1",
            trigger=trigger,
            scope=Scope(kind, None if kind == "full" else draw(st.sampled_from(named))),
            strategy=draw(st.sampled_from(strategies)),
            token_gap=draw(st.none() | st.integers(0, 20_000)) if trigger == "reactive" else None,
        ),
        script=draw(scripts),
        counted_tokens=draw(st.none() | st.integers(1_000, 30_000)),
        window_tokens=draw(st.sampled_from([2_000, 6_000, 20_000, 60_000])),
        state=draw(st.sampled_from([SessionState(), STATE])),
        warm=draw(st.booleans()),
        says=draw(hook_messages),
    )


@st.composite
def named_sessions(draw: st.DrawFn) -> tuple[Message, ...]:
    """Any history, each message under a uuid of its own."""
    return tuple(replace(message, uuid=f"m-{place}") for place, message in enumerate(draw(histories())))


any_jobs = jobs(st.one_of(histories(), clean_sessions()))
named_jobs = jobs(st.one_of(named_sessions(), clean_sessions()))


def _after_the_user_went_on(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """What is sent next: the list, the results of open calls, and the user's words."""
    sent = wire.api_messages(messages)
    results = [{"type": "tool_result", "tool_use_id": ident, "content": "ok"} for ident in open_calls(sent)]
    return [*sent, {"role": "user", "content": [*results, {"type": "text", "text": "And now?"}]}]


@MOST
@given(any_jobs)
def test_every_request_that_is_sent_obeys_the_rules(job: Job) -> None:
    """A shared prefix repeats the session's own thinking, which nothing before it has changed."""
    for kind, body in ran(job).model.bodies:
        broken = broken_rules(body["messages"])
        assert [rule for rule in broken if kind == "fresh" or rule != KEPT_THINKING] == []
        assert body["messages"][-1]["role"] == "user"


@MOST
@given(any_jobs)
def test_every_list_that_is_returned_obeys_the_rules_when_the_user_goes_on(job: Job) -> None:
    done = ran(job)
    if done.result is not None:
        assert broken_rules(_after_the_user_went_on(done.result.messages)) == []
        assert wire.api_messages(done.result.messages)[0]["role"] == "user"


@MOST
@given(named_jobs)
def test_summarised_kept_and_dropped_are_everything_and_nothing_is_two_of_them(job: Job) -> None:
    done = ran(job)
    if done.result is None or not done.model.bodies:
        return
    everything = {m.uuid for m in conversation(job.messages) if not is_rebuilt(m) and not _is_only_thinking(m)}
    kept = {message.uuid for message in done.result.kept}
    summarised = {message.uuid for message in done.model.requests[-1].messages} & everything
    dropped = everything - kept - summarised
    assert kept <= everything
    assert not kept & summarised
    rebuilt_or_thought = len(conversation(job.messages)) - len(everything)
    assert len(dropped) <= done.result.dropped.messages <= len(dropped) + rebuilt_or_thought
    if not done.result.dropped.messages:
        assert kept | summarised == everything


@MOST
@given(named_jobs)
def test_without_a_model_too_nothing_is_lost(job: Job) -> None:
    """Micro-compaction alone keeps everything; a memory stands for some, and what it keeps stays in order."""
    done = ran(job)
    if done.result is None or done.model.bodies:
        return
    spoken = [m.uuid for m in conversation(job.messages) if not is_rebuilt(m) and not _is_only_thinking(m)]
    kept = [message.uuid for message in done.result.kept if not is_rebuilt(message)]
    if done.result.strategy == "microcompact":
        assert [uuid for uuid in kept if uuid in set(spoken)] == spoken
    else:
        assert [uuid for uuid in spoken if uuid in set(kept)] == kept
        assert done.result.summary


@MOST
@given(any_jobs, st.sampled_from(["manual", "auto", "reactive", "bulk"]), st.booleans())
def test_a_second_compaction_never_grows_what_the_first_one_made(job: Job, trigger: Trigger, same_scope: bool) -> None:
    first = ran(job).result
    if first is None:
        return
    named = first.kept[-1].uuid if first.kept and same_scope else None
    scope = Scope("up_to", named) if named is not None else Scope()
    again = replace(
        job,
        messages=first.messages,
        order=Order(job_id="job-2", trigger=trigger, scope=scope),
        script=(summary_reply(),),
        counted_tokens=None,
    )
    second = ran(again).result
    if second is not None:
        before, after = (tokens.estimate_messages(conversation(one.messages)) for one in (first, second))
        assert after <= before
        assert broken_rules(_after_the_user_went_on(second.messages)) == []


def _is_only_thinking(message: Message) -> bool:
    blocks = message.blocks()
    return bool(blocks) and all("thinking" in block["type"] for block in blocks)
