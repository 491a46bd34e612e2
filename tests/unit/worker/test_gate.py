"""Who may think at once."""

from __future__ import annotations

import asyncio

import pytest

from worker.gate import PATIENCE_SECONDS, Gate, Seat

pytestmark = pytest.mark.anyio


async def settle() -> None:
    """Lets every task that can go on go on."""
    for _ in range(10):
        await asyncio.sleep(0)


class Jobs:
    """Jobs that sit in a gate's seats until they are told to go."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.seated: list[str] = []
        self.seats: dict[str, Seat] = {}
        self.go: dict[str, asyncio.Event] = {}

    async def sit(self, name: str) -> None:
        """Takes a seat, and leaves it when told to."""
        self.go[name] = asyncio.Event()
        async with self.gate.seat() as seat:
            self.seats[name] = seat
            self.seated.append(name)
            await self.go[name].wait()


async def test_no_more_start_at_once_than_there_are_places_and_they_take_turns() -> None:
    jobs = Jobs(Gate(starting=2))
    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(jobs.sit(name))
        await settle()
        assert jobs.seated == ["a", "b"]
        jobs.go["a"].set()
        await settle()
        assert jobs.seated == ["a", "b", "c"]
        jobs.go["b"].set()
        jobs.go["c"].set()


async def test_a_place_that_is_left_is_somebody_elses_and_is_not_freed_twice() -> None:
    jobs = Jobs(Gate(starting=1))
    async with asyncio.TaskGroup() as group:
        for name in "abc":
            group.create_task(jobs.sit(name))
        await settle()
        jobs.seats["a"].leave()
        jobs.seats["a"].leave()
        await settle()
        assert jobs.seated == ["a", "b"]
        jobs.go["a"].set()
        await settle()
        assert jobs.seated == ["a", "b"]
        jobs.go["b"].set()
        await settle()
        jobs.go["c"].set()


async def test_who_comes_back_waits_for_a_place_to_end_from_not_for_those_who_start() -> None:
    gate = Gate(starting=1, ending=1)
    done: list[str] = []

    async def call(name: str, answer: asyncio.Event) -> None:
        async with gate.seat() as seat:
            async with seat.waiting():
                seat.leave()
                await answer.wait()
            done.append(name)
            await end.wait()

    first, second, end = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(call("a", first))
        group.create_task(call("b", second))
        await settle()
        async with gate.seat():  # somebody starts meanwhile
            first.set()
            second.set()
            await settle()
            assert done == ["a"]
            end.set()
            await settle()
            assert done == ["a", "b"]


async def test_who_is_answered_at_once_keeps_the_place() -> None:
    gate = Gate(starting=1, ending=1)
    async with gate.seat() as seat:
        async with seat.waiting():
            pass
        jobs = Jobs(gate)
        waiting = asyncio.create_task(jobs.sit("b"))
        await settle()
        assert jobs.seated == []
        waiting.cancel()


async def test_who_waits_too_long_loses_the_place() -> None:
    gate = Gate(starting=1)
    async with gate.seat() as seat, seat.waiting(), asyncio.timeout(20 * PATIENCE_SECONDS), gate.seat():
        pass


async def test_who_is_cancelled_while_he_waits_frees_everything() -> None:
    gate = Gate(starting=1, ending=1)

    async def call() -> None:
        async with gate.seat() as seat, seat.waiting():
            await asyncio.Event().wait()

    task = asyncio.create_task(call())
    await settle()
    task.cancel()
    await asyncio.wait([task])
    async with asyncio.timeout(5), gate.seat() as seat, seat.waiting():
        seat.leave()
