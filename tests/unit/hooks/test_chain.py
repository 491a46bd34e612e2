from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from compaction.core.addresses import AddressRules
from compaction.core.hooks import MAX_TIMEOUT_SECONDS, Endpoint, Event
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message
from compaction.hooks.chain import HookChain, HookSources
from compaction.hooks.guarded import CallProblem, GuardedCaller
from compaction.hooks.plugins import PluginHook, hook
from compaction.ports import HookContext

pytestmark = pytest.mark.anyio

CONTEXT = HookContext(tenant="t", session_id="s", job_id="j", trigger="auto", instructions=None, pre_tokens=5)
Say = Callable[[], Awaitable[Json]]


@dataclass
class ScriptedHook:
    """Answers by a function; remembers for what it was asked."""

    name: str
    say: Say
    events: tuple[Event, ...] = ("pre_compact", "session_start")
    timeout_seconds: float = 60.0
    asked: list[tuple[Event, HookContext]] = field(default_factory=list)

    def hears(self, event: Event) -> bool:
        return event in self.events

    async def ask(self, event: Event, context: HookContext) -> Json:
        self.asked.append((event, context))
        return await self.say()


def saying(answer: Any) -> Say:  # noqa: ANN401 - JSON
    """Gives the answer at once."""

    async def say() -> Json:
        return answer

    return say


def raising(error: BaseException) -> Say:
    """Raises."""

    async def say() -> Json:
        raise error

    return say


async def forever() -> Json:
    await asyncio.Event().wait()


async def problem_of(say: Say, timeout_seconds: float = 60.0) -> str | None:
    """What the note of a hook says that answers so."""
    answer = await HookChain([ScriptedHook("h", say, timeout_seconds=timeout_seconds)]).pre_compact(CONTEXT)
    assert (answer.instructions, answer.veto) == (None, None)
    return answer.notes[0].problem


async def test_all_hooks_are_asked_with_ids_and_sizes_and_answer_in_their_order() -> None:
    hooks = [ScriptedHook(name, saying({"instructions": name})) for name in ("one", "two", "three")]
    answer = await HookChain(hooks).pre_compact(CONTEXT)
    assert answer.instructions == "one\n\ntwo\n\nthree"
    assert [(note.name, note.event, note.ok) for note in answer.notes] == [
        ("one", "pre_compact", True),
        ("two", "pre_compact", True),
        ("three", "pre_compact", True),
    ]
    assert hooks[1].asked == [("pre_compact", CONTEXT)]


async def test_a_hook_is_asked_only_for_what_it_hears() -> None:
    before = ScriptedHook("before", saying({"veto": "no"}), events=("pre_compact",))
    after = ScriptedHook("after", saying({"messages": [{"role": "user", "content": "hi"}]}), events=("session_start",))
    chain = HookChain([before, after])
    start = await chain.session_start(CONTEXT)
    assert start.messages == (Message(role="user", content="hi", is_meta=True),)
    assert [note.name for note in start.notes] == ["after"]
    assert before.asked == []
    assert (await chain.pre_compact(CONTEXT)).veto == "no"


async def test_hooks_are_asked_at_the_same_time_and_slow_ones_keep_their_place() -> None:
    first_may_end = asyncio.Event()

    async def first() -> Json:
        await first_may_end.wait()
        return {"instructions": "first"}

    async def second() -> Json:
        first_may_end.set()  # the first one can only end when the second one runs beside it
        return {"instructions": "second"}

    answer = await HookChain([ScriptedHook("a", first), ScriptedHook("b", second)]).pre_compact(CONTEXT)
    assert answer.instructions == "first\n\nsecond"


async def test_a_slow_hook_becomes_a_note() -> None:
    assert await problem_of(forever, 0.01) == "did not answer within 0.01 s"


async def test_no_hook_gets_more_than_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compaction.core.hooks.MAX_TIMEOUT_SECONDS", 0.01)
    assert MAX_TIMEOUT_SECONDS == 30
    assert await problem_of(forever, 600) == "did not answer within 0.01 s"


async def test_a_hook_that_gives_up_becomes_a_note() -> None:
    assert await problem_of(raising(asyncio.CancelledError())) == "gave up by itself"


async def test_a_problem_of_a_call_is_told_as_it_is() -> None:
    assert await problem_of(raising(CallProblem("answered with status 500"))) == "answered with status 500"


async def test_an_exception_is_told_and_logged_by_its_type_alone() -> None:
    with capture_logs() as lines:
        assert await problem_of(raising(ValueError("the customer's password"))) == "raised ValueError"
    assert [(line["event"], line["hook"], line["error"]) for line in lines] == [("hook.raised", "h", "ValueError")]
    assert "password" not in str(lines)


async def test_a_failing_hook_does_not_silence_the_others() -> None:
    hooks = [ScriptedHook("bad", raising(KeyError())), ScriptedHook("good", saying({"instructions": "x"}))]
    answer = await HookChain(hooks).pre_compact(CONTEXT)
    assert answer.instructions == "x"
    assert [note.ok for note in answer.notes] == [False, True]
    assert all(note.seconds >= 0 for note in answer.notes)


async def test_a_cancelled_job_does_not_wait_for_its_hooks() -> None:
    begun = asyncio.Event()

    async def slow() -> Json:
        begun.set()
        await forever()

    task = asyncio.create_task(HookChain([ScriptedHook("h", slow)]).pre_compact(CONTEXT))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_stuck_plugin_is_left_alone_with_a_note() -> None:
    go = threading.Event()

    class Stuck:
        @hook
        def pre_compact(self) -> None:
            go.wait(60)

    answer = await HookChain([PluginHook("stuck", Stuck(), timeout_seconds=0.05)]).pre_compact(CONTEXT)
    go.set()
    assert [(note.name, note.problem) for note in answer.notes] == [("plugin:stuck", "did not answer within 0.05 s")]


async def test_plugins_come_before_the_tenants_endpoints() -> None:
    class Quiet:
        @hook
        def pre_compact(self) -> None: ...

    sources = HookSources((PluginHook("p", Quiet(), timeout_seconds=5),), GuardedCaller(AddressRules()))
    endpoint = Endpoint("id-1", "pre_compact", "http://127.0.0.1/", "whsec_" + "A" * 32, 3.0)
    chain = sources.chain([endpoint])
    assert [hook.name for hook in chain.hooks] == ["plugin:p", "http:id-1"]
    answer = await chain.pre_compact(CONTEXT)
    assert [note.problem for note in answer.notes] == [None, "the host's address is not allowed here (loopback)"]
    assert (await chain.session_start(CONTEXT)).notes == ()
