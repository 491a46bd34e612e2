"""Counts every call that a job makes to a port or the store, and does something to one of them: before, or after."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.auto import Switches
from compaction.store.engine import Database
from compaction.store.jobs import Claim
from compaction.task import Ports, Task
from worker.assignment import Assignments
from worker.recorder import AttemptRecorder

WIRED = ("history", "summarizer", "extractive", "recorder", "hooks")


class Tripwire:
    """Calls `act` at the step number `at`, once; it may raise. Remembers the names of all steps."""

    def __init__(self, at: int | None = None, act: Callable[[], object] = bool) -> None:
        self.steps: list[str] = []
        self._at = at
        self._act = act

    async def step(self, name: str) -> None:
        """One step further; the loop turns once, so that what was asked of it happens."""
        self.steps.append(name)
        if len(self.steps) - 1 == self._at:
            self._act()
            await asyncio.sleep(0)


class WiredDatabase(Database):
    """Postgres with a tripwire before each use of a connection, and one after it: done, but the answer is lost."""

    def __init__(self, url: str) -> None:
        super().__init__(url, pool_size=3)
        self.wire = Tripwire()

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """A transaction."""
        await self.wire.step("store: before a transaction")
        async with super().begin() as conn:
            yield conn
        await self.wire.step("store: after a transaction")

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncConnection]:
        """A connection."""
        await self.wire.step("store: before a statement")
        async with super().connect() as conn:
            yield conn
        await self.wire.step("store: after a statement")


class WiredPort:
    """Any port with a tripwire before and after each call that waits; what does not wait cannot break."""

    def __init__(self, name: str, port: object, wire: Tripwire) -> None:
        self._name = name
        self._port = port
        self._wire = wire

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the port has
        found = getattr(self._port, name)
        if inspect.iscoroutinefunction(found):

            async def called(*given: object, **named: object) -> object:
                await self._wire.step(f"before {self._name}.{name}")
                answer: object = await found(*given, **named)
                await self._wire.step(f"after {self._name}.{name}")
                return answer

            return called
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class WiredAssignments(Assignments):
    """Hands out ports with tripwires."""

    wire: Tripwire

    async def prepare(self, claim: Claim, recorder: AttemptRecorder) -> tuple[Task, Switches, Ports]:
        """The attempt's task, its switches, and its ports on the wire."""
        task, switches, ports = await Assignments.prepare(self, claim, recorder)
        wired: dict[str, Any] = {name: WiredPort(name, getattr(ports, name), self.wire) for name in WIRED}
        return task, switches, replace(ports, **wired)
