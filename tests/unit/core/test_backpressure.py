"""When a producer that was refused should come again."""

from __future__ import annotations

import pytest

from compaction.core.backpressure import Caps, retry_after_seconds


@pytest.mark.parametrize(
    ("waiting", "per_second", "expected"),
    [
        (1_000, 5.0, 10.0),  # a twentieth, 50 jobs, at 5 a second
        (100, 100.0, 1.0),  # at once; but no sooner than in a second
        (1_000_000, 1.0, 300.0),  # a guess beyond five minutes is none
        (1_000, 0.0, 30.0),  # nothing is being taken
    ],
)
def test_the_wait_follows_the_pace_at_which_jobs_are_taken(waiting: int, per_second: float, expected: float) -> None:
    assert retry_after_seconds(waiting, per_second) == expected


def test_no_cap_is_the_default() -> None:
    assert Caps() == Caps(tenant=None, everybody=None)
