from __future__ import annotations

import asyncio
import gc

import pytest

from compaction.hooks import deadline
from compaction.hooks.deadline import GaveUp, TooSlow, within

pytestmark = pytest.mark.anyio

LONG_SECONDS = 600.0


async def answer() -> str:
    return "here"


async def test_work_that_is_done_in_time_gives_what_it_returns() -> None:
    assert await within(LONG_SECONDS, answer()) == "here"


async def test_work_that_raises_is_heard() -> None:
    async def fail() -> str:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await within(LONG_SECONDS, fail())


async def test_slow_work_is_cancelled() -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(LONG_SECONDS)
        finally:
            ended.append("cancelled")

    with pytest.raises(TooSlow):
        await within(0.01, wait())
    assert ended == ["cancelled"]


async def test_work_that_cancels_itself_does_not_cancel_who_waits() -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(GaveUp):
        await within(LONG_SECONDS, give_up())


async def test_work_that_does_not_let_itself_be_cancelled_is_left_alone_and_its_end_is_heard() -> None:
    go = asyncio.Event()
    reports: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reports.append(context))

    async def stubborn() -> None:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        raise RuntimeError("late")

    with pytest.raises(TooSlow):
        await within(0.01, stubborn())
    assert len(deadline._abandoned) == 1
    go.set()
    for _ in range(5):  # turns of the loop: the task ends, then its end is heard
        await asyncio.sleep(0)
    gc.collect()
    assert deadline._abandoned == set()
    assert reports == []


async def test_when_the_one_who_waits_is_cancelled_so_is_the_work() -> None:
    ended = asyncio.Event()
    begun = asyncio.Event()

    async def wait() -> None:
        begun.set()
        try:
            await asyncio.sleep(LONG_SECONDS)
        finally:
            ended.set()

    waiting = asyncio.create_task(within(LONG_SECONDS, wait()))
    await begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await ended.wait()
