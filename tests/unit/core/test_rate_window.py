"""What may still be spent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.core.rate_window import Granted, Limits, Rates, RateWindow, Spend


def window(*grants: tuple[float, Spend]) -> RateWindow:
    """A window of 60 s and 2 s of slack with these grants."""
    made = RateWindow()
    for at, spend in grants:
        made.add(Granted(at, spend))
    return made


def test_there_is_room_until_the_limit_is_reached() -> None:
    used = window((0.0, Spend()), (1.0, Spend()))
    assert used.wait_seconds(Spend(), Rates(requests=3), 1.0) == 0.0
    assert used.wait_seconds(Spend(), Rates(requests=2), 1.0) == 61.0  # the first one leaves the window at 62


def test_the_longest_wait_of_all_kinds_counts() -> None:
    """Tokens: 900 of 1,000 are used, 300 are wanted; only with the second grant, at 10 + 62, enough has left."""
    used = window((0.0, Spend(1, 100, 0)), (10.0, Spend(1, 800, 0)))
    assert used.wait_seconds(Spend(1, 300, 0), Rates(requests=10, input_tokens=1_000), 20.0) == 52.0


def test_output_tokens_are_counted_apart() -> None:
    used = window((0.0, Spend(1, 0, 20_000)))
    assert used.wait_seconds(Spend(1, 0, 20_000), Rates(output_tokens=40_000), 0.0) == 0.0
    assert used.wait_seconds(Spend(1, 0, 20_001), Rates(output_tokens=40_000), 0.0) == 62.0


def test_what_is_older_than_the_window_is_forgotten() -> None:
    used = window((0.0, Spend()))
    assert len(used.grants(61.9)) == 1
    assert used.grants(62.0) == []


def test_a_call_that_is_larger_than_the_limit_goes_alone() -> None:
    """150,000 tokens against 100,000 a minute: nothing could ever hold it, so it goes when nothing else counts."""
    rates = Rates(input_tokens=100_000)
    assert window().wait_seconds(Spend(1, 150_000, 0), rates, 0.0) == 0.0
    assert window((0.0, Spend(1, 1, 0))).wait_seconds(Spend(1, 150_000, 0), rates, 0.0) == 62.0


def test_without_limits_nobody_waits() -> None:
    assert window(*[(0.0, Spend(1, 10**9, 10**9))] * 50).wait_seconds(Spend(), Rates(), 0.0) == 0.0


def test_a_share_is_rounded_down_and_a_share_of_nothing_holds_nothing() -> None:
    assert Rates(10, 1_000, None).share(3) == Rates(3, 333, None)
    assert window().wait_seconds(Spend(), Rates(requests=2).share(3), 0.0) == 62.0


def test_a_correction_counts_from_then_on() -> None:
    grant = Granted(0.0, Spend(1, 500, 20_000))
    used = RateWindow()
    used.add(grant)
    grant.spend += Spend(1, 400, 900) - grant.spend
    assert grant.spend == Spend(1, 400, 900)
    assert used.wait_seconds(Spend(1, 600, 0), Rates(input_tokens=1_000), 0.0) == 0.0


def test_limits_are_set_when_any_of_them_is() -> None:
    assert not Limits().are_set
    assert Limits(Rates(output_tokens=1)).are_set
    assert Limits(tenant_calls=1).are_set


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(1, 40)), max_size=80), st.integers(1, 100))
def test_no_window_ever_holds_more_than_the_limit(steps: list[tuple[float, int]], limit: int) -> None:
    """Whoever asks, waits as long as he is told and then goes never makes any minute hold more than allowed."""
    rates, used, now = Rates(input_tokens=limit), RateWindow(), 0.0
    granted: list[tuple[float, int]] = []
    for pause, size in steps:
        now += pause
        while (wait := used.wait_seconds(Spend(1, size, 0), rates, now)) > 0:
            now += wait + 1e-6
        spend = rates.fitted(Spend(1, size, 0))
        used.add(Granted(now, spend))
        granted.append((now, spend.input_tokens))
    for start, _ in granted:
        assert sum(size for at, size in granted if start <= at < start + 60) <= limit


@pytest.mark.parametrize("sharers", [0, 1])
def test_one_sharer_has_it_all(sharers: int) -> None:
    assert Rates(10, 20, 30).share(sharers) == Rates(10, 20, 30)


def test_a_grant_that_was_not_used_counts_no_longer_and_an_equal_one_still_does() -> None:
    used = RateWindow()
    unused, other = Granted(0.0, Spend()), Granted(0.0, Spend())
    used.add(unused)
    used.add(other)
    used.remove(unused)
    assert used.grants(1.0) == [other]
    assert used.grants(1.0)[0] is other
