"""The Hooks port: asks all plugins and HTTP hooks of an event at the same time and makes one answer of theirs.

The order that decides (whose veto is told, whose instructions come first) is plugins by name, then endpoints by age.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from compaction import telemetry
from compaction.core import hooks
from compaction.core.hooks import Endpoint, Event, HookOutcome
from compaction.core.jsonbytes import Json
from compaction.hooks.deadline import GaveUp, TooSlow, within
from compaction.hooks.guarded import CallProblem, GuardedCaller
from compaction.hooks.http import HttpHook
from compaction.hooks.plugins import PluginHook
from compaction.ports import HookContext, PreCompactAnswer, SessionStartAnswer

_log = telemetry.logger("hooks")


class Hook(Protocol):
    """One that can be asked."""

    @property
    def name(self) -> str:
        """Its name in notes."""
        ...

    @property
    def timeout_seconds(self) -> float:
        """How long it may take."""
        ...

    def hears(self, event: Event) -> bool:
        """Whether it wants to be asked at this event."""
        ...

    async def ask(self, event: Event, context: HookContext) -> Json:
        """Its answer, not judged. May raise anything."""
        ...


@dataclass(frozen=True, slots=True)
class HookChain:
    """The hooks of one job, in the order that decides."""

    hooks: Sequence[Hook]

    async def pre_compact(self, context: HookContext) -> PreCompactAnswer:
        """Instructions, the first veto, and a note per hook."""
        return hooks.pre_compact_answer(await self._asked("pre_compact", context))

    async def session_start(self, context: HookContext) -> SessionStartAnswer:
        """Messages, and a note per hook."""
        return hooks.session_start_answer(await self._asked("session_start", context))

    async def _asked(self, event: Event, context: HookContext) -> list[HookOutcome]:
        wanted = [hook for hook in self.hooks if hook.hears(event)]
        return await asyncio.gather(*(_outcome(hook, event, context) for hook in wanted))


@dataclass(frozen=True, slots=True)
class HookSources:
    """Where a process's hooks come from: its plugins, and what calls the tenants' endpoints."""

    plugins: tuple[PluginHook, ...]
    caller: GuardedCaller

    def chain(self, endpoints: Sequence[Endpoint]) -> HookChain:
        """The hooks of one job: all plugins, then the tenant's endpoints as they are given."""
        return HookChain((*self.plugins, *(HttpHook(endpoint, self.caller) for endpoint in endpoints)))


async def _outcome(hook: Hook, event: Event, context: HookContext) -> HookOutcome:
    """What asking comes to; whatever goes wrong is told, nothing is raised but a cancellation of ourselves."""
    seconds = min(hook.timeout_seconds, hooks.MAX_TIMEOUT_SECONDS)
    started = time.monotonic()
    answer, problem = None, None
    try:
        answer = await within(seconds, hook.ask(event, context))
    except TooSlow:
        problem = f"did not answer within {seconds:g} s"
    except GaveUp:
        problem = "gave up by itself"
    except CallProblem as error:
        problem = str(error)
    except Exception as error:  # noqa: BLE001 - a hook may raise anything, and no hook may cost the job
        problem = f"raised {type(error).__name__}"
        _log.warning("hook.raised", hook=hook.name, hook_event=event, **telemetry.failure(error))
    spent_seconds = time.monotonic() - started
    return HookOutcome(name=hook.name, event=event, seconds=spent_seconds, answer=answer, problem=problem)
