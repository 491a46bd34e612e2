"""The measurement of thinking: what it measures, and what it calls met. Nothing here asks how fast this machine is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ops.bench import core
from ops.bench.core import MEGABYTE, Figures

TEN = Figures(
    size_bytes=10 * MEGABYTE + 512,
    messages=6_000,
    steps={"rounds": 0.010, "repair": 0.040},
    array_seconds=0.020,
    bodies_seconds=0.025,
)
HUNDRED = replace(TEN, size_bytes=100 * MEGABYTE, steps={"rounds": 0.100, "repair": 0.400})


def test_the_stricter_reading_of_the_same_bytes_decides() -> None:
    """50 ms of steps are 2.5 times 20 ms of json.loads and twice 25 ms."""
    assert TEN.ratio == pytest.approx(2.5)
    assert core.problems([TEN, HUNDRED]) == []


def test_three_times_json_loads_is_too_much() -> None:
    slow = replace(TEN, steps={"repair": 0.060})
    assert core.problems([slow, HUNDRED]) == ["all steps together take 3.00 times json.loads, not less than 3"]


def test_a_megabyte_that_grows_dear_is_not_linear() -> None:
    """1,100 ms for 100 MB are 11 ms a MB; 10 MB took 5 ms a MB."""
    dear = replace(HUNDRED, steps={"repair": 1.100})
    assert core.problems([TEN, dear]) == ["a megabyte of the largest session costs 2.20 times as much: not linear"]


def test_the_session_is_as_large_as_asked_and_always_the_same() -> None:
    bodies = core.session(MEGABYTE // 10)
    assert bodies == core.session(MEGABYTE // 10)
    assert sum(map(len, bodies[:-1])) < MEGABYTE // 10 <= sum(map(len, bodies))


def test_every_step_works_on_the_session_and_is_told() -> None:
    figures = core.measured(core.session(MEGABYTE // 5), repetitions=1)
    assert list(figures.steps) == ["guards", "estimate", "rounds", "repair", "micro-compaction", "rendering"]
    told = core.table(figures)
    assert all(f"\n{name} " in told for name in (*figures.steps, "together"))
