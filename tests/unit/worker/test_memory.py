"""A worker that has grown too large asks to end, once."""

from __future__ import annotations

import sys

import pytest

from worker import memory

pytestmark = pytest.mark.anyio


async def test_it_ends_when_it_holds_more_than_it_may() -> None:
    held, ends = iter([100.0, 499.0, 500.0, 501.0, 900.0]), []
    await memory.watch(500, end=lambda: ends.append(1), resident=lambda: next(held), look_seconds=0)
    assert (ends, next(held)) == ([1], 900.0)


async def test_a_system_that_does_not_tell_ends_nobody() -> None:
    ends: list[int] = []
    await memory.watch(1, end=lambda: ends.append(1), resident=lambda: None, look_seconds=0)
    assert ends == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks in /proc")
def test_this_process_holds_some_memory() -> None:
    held = memory.resident_mb()
    assert held is not None
    assert 5 < held < 100_000
