"""What the Models API says about a model, asked once in a while. A failure is remembered for a shorter time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from compaction.summarizers.models import ModelLimits

KNOWN_SECONDS = 3_600.0  # limits of a model change with a release, not within the hour
UNKNOWN_SECONDS = 60.0  # a platform without a Models API, or one that is down
MAX_MODELS = 256  # names come from sessions, so their number must be bounded


@runtime_checkable
class TellsLimits(Protocol):
    """A summarizer whose provider may know the limits of its models."""

    async def limits(self, model: str) -> ModelLimits | None:
        """What the provider says about the model, None where it cannot tell. Never raises a ProviderError."""
        ...


class ModelDirectory:
    """Answers from memory where it can. `ask` gives a model's limits or None; it must not raise.

    Who wants to know what is being asked already waits for the same answer: jobs start by the hundred.
    """

    def __init__(self, ask: Callable[[str], Awaitable[ModelLimits | None]], now: Callable[[], float]) -> None:
        self._ask = ask
        self._now = now
        self._found: dict[str, tuple[float, ModelLimits | None]] = {}
        self._asking: dict[str, asyncio.Task[ModelLimits | None]] = {}

    async def limits(self, model: str) -> ModelLimits | None:
        """The limits, or None when the provider cannot tell; then the table of `models` has to do."""
        kept = self._found.get(model)
        if kept and self._now() < kept[0]:
            return kept[1]
        asking = self._asking.get(model)
        if asking is None:
            asking = self._asking[model] = asyncio.create_task(self._answer(model))
            asking.add_done_callback(lambda _: self._asking.pop(model))
        return await asyncio.shield(asking)  # who is cancelled takes the answer from nobody

    async def _answer(self, model: str) -> ModelLimits | None:
        found = await self._ask(model)
        if len(self._found) >= MAX_MODELS:
            self._found.pop(next(iter(self._found)))
        self._found[model] = (self._now() + (KNOWN_SECONDS if found else UNKNOWN_SECONDS), found)
        return found
