"""The watchdog over a call, on a real loop with short deadlines."""

from __future__ import annotations

import asyncio

import pytest

from compaction.summarizers.watchdog import Deadlines, Watchdog

pytestmark = pytest.mark.anyio
NEVER = 3_600.0


async def test_silence_before_the_first_event_ends_the_call() -> None:
    dog = Watchdog(Deadlines(first_event_seconds=0.02, idle_seconds=NEVER))
    with pytest.raises(TimeoutError):
        async with dog:
            await asyncio.sleep(NEVER)
    assert dog.expired == "silent"


async def test_silence_between_events_ends_the_call() -> None:
    dog = Watchdog(Deadlines(first_event_seconds=NEVER, idle_seconds=0.02))

    async def go_silent() -> None:
        dog.allow(0.02)
        await asyncio.sleep(NEVER)

    with pytest.raises(TimeoutError):
        async with dog:
            await go_silent()
    assert dog.expired == "silent"


async def test_events_keep_a_call_alive_but_the_total_still_bounds_it() -> None:
    dog = Watchdog(Deadlines(total_seconds=0.2, idle_seconds=0.1))

    async def talk() -> None:
        while True:
            await asyncio.sleep(0.01)
            dog.seen()

    with pytest.raises(TimeoutError):
        async with dog:
            await talk()
    assert dog.expired == "total"


async def test_a_call_that_ends_in_time_is_left_alone() -> None:
    dog = Watchdog(Deadlines())
    async with dog:
        dog.seen()
    assert dog.expired is None


async def test_an_error_inside_and_a_cancellation_from_outside_pass_through() -> None:
    with pytest.raises(KeyError):
        async with Watchdog(Deadlines()):
            raise KeyError

    async def wait() -> None:
        async with Watchdog(Deadlines()):
            await asyncio.sleep(NEVER)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_first_event_may_take_twice_as_long_as_the_others_unless_said() -> None:
    assert Deadlines(idle_seconds=4).start_seconds == 8
    assert Deadlines(idle_seconds=4, first_event_seconds=1).start_seconds == 1
