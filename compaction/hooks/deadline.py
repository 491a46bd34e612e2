"""Waits for work of others no longer than agreed, whatever that work does about it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

GRACE_SECONDS = 0.1  # for work that was cancelled to close its connections

_abandoned: set[asyncio.Task[Any]] = set()  # asyncio itself holds tasks weakly


class TooSlow(Exception):
    """The work was not done in time."""


class GaveUp(Exception):
    """The work cancelled itself."""


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns or raises. Raises TooSlow when it takes longer, GaveUp when it cancels itself.

    Work that does not end when it is cancelled goes on without anybody waiting for it; its end is not missed.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_SECONDS)
            raise TooSlow
    finally:
        _abandon(task)
    if task.cancelled():
        raise GaveUp
    return task.result()


def _abandon(task: asyncio.Task[Any]) -> None:
    """Cancels a task that still runs, and hears its end so that asyncio does not report it as forgotten."""
    if not task.done():
        task.cancel()
    _abandoned.add(task)
    task.add_done_callback(_heard)


def _heard(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()
