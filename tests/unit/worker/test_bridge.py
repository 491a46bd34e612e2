"""The bridge between Celery's threads and the one asyncio loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from worker.bridge import Bridge


@pytest.fixture
def bridge() -> Iterator[Bridge]:
    """A turning bridge."""
    one = Bridge()
    one.start()
    yield one
    one.stop()


async def _thread_name() -> str:
    return threading.current_thread().name


def test_work_of_many_threads_runs_on_one_loop(bridge: Bridge) -> None:
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(bridge.run(_thread_name()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names == ["compactd-loop"] * 8


def test_an_error_on_the_loop_reaches_the_thread_that_waits(bridge: Bridge) -> None:
    async def fail() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        bridge.run(fail())


def test_two_jobs_wait_at_the_same_time(bridge: Bridge) -> None:
    """The second can set the first free only if both are under way together."""
    free = threading.Event()
    done: list[str] = []

    async def first(gate: asyncio.Event) -> None:
        await gate.wait()
        done.append("first")
        free.set()

    async def make_gate() -> asyncio.Event:
        return asyncio.Event()

    async def second(gate: asyncio.Event) -> None:
        done.append("second")
        gate.set()

    gate = bridge.run(make_gate())
    waiting = threading.Thread(target=lambda: bridge.run(first(gate)))
    waiting.start()
    bridge.run(second(gate))
    waiting.join()
    assert free.is_set()
    assert done == ["second", "first"]


def test_stopping_cancels_what_still_runs() -> None:
    bridge = Bridge()
    bridge.start()
    cancelled = threading.Event()

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    bridge.spawn(wait_for_ever())
    bridge.run(asyncio.sleep(0))
    bridge.stop()
    assert cancelled.is_set()


def test_a_stuck_loop_shows_as_lag(bridge: Bridge) -> None:
    gate = threading.Event()

    async def block() -> None:
        gate.wait()  # blocking on purpose: this is what must never happen on the loop

    bridge.spawn(block())
    while bridge.lag_seconds() == 0.0:
        threading.Event().wait(0.05)
    lag = bridge.lag_seconds()
    gate.set()
    assert lag > 0.0


def test_a_stop_closes_in_order_once_nothing_runs_and_goes_on_past_what_cannot_be_closed() -> None:
    bridge = Bridge()
    bridge.start()
    told: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            told.append("work ended")

    async def first() -> None:
        told.append("first")
        raise ConnectionError("gone already")

    async def second() -> None:
        told.append("second")

    bridge.spawn(work())
    bridge.run(asyncio.sleep(0))
    bridge.stop(first, second)
    assert told == ["work ended", "first", "second"]
