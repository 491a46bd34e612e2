"""When a delivery is tried again, given up, or costs its endpoint the service."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.core.webhooks import Attempt, Standing, is_over, judge, retry_seconds

DAY = 86_400.0
MIDDLE = 0.5  # dice that change nothing


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [(1, 5), (2, 20), (3, 80), (4, 320), (5, 1_280), (6, 5_120), (7, 20_480), (8, 21_600), (9, 21_600), (500, 21_600)],
)
def test_each_pause_is_four_times_the_one_before_up_to_six_hours(attempts: int, seconds: float) -> None:
    assert retry_seconds(attempts, MIDDLE) == pytest.approx(seconds)


@given(st.integers(1, 100), st.floats(0, 1))
def test_a_pause_is_spread_by_a_tenth_at_most(attempts: int, dice: float) -> None:
    plain = retry_seconds(attempts, MIDDLE)
    assert plain * 0.9 - 0.001 <= retry_seconds(attempts, dice) <= plain * 1.1 + 0.001


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_2xx_is_a_delivery(status: int) -> None:
    verdict = judge(Attempt(status), Standing(3, 100.0, 50 * DAY), dice=MIDDLE)
    assert (verdict.status, verdict.error, verdict.http_status, verdict.disable) == ("delivered", None, status, None)


@pytest.mark.parametrize("status", [100, 199, 301, 302, 307, 400, 401, 404, 429, 500, 503])
def test_any_other_status_is_tried_again(status: int) -> None:
    verdict = judge(Attempt(status), Standing(2, 60.0, 60.0), dice=MIDDLE)
    assert (verdict.status, verdict.error, verdict.http_status) == ("pending", "http_status", status)
    assert verdict.delay_seconds == pytest.approx(20)


@pytest.mark.parametrize(
    ("asked", "delay_seconds"), [(None, 20.0), (0.0, 20.0), (5.0, 20.0), (90.0, 90.0), (3600.0, 3600.0), (1e9, 3600.0)]
)
def test_a_receiver_may_ask_for_a_longer_pause_up_to_an_hour(asked: float | None, delay_seconds: float) -> None:
    verdict = judge(Attempt(429, retry_after_seconds=asked), Standing(2, 60.0, 60.0), dice=MIDDLE)
    assert (verdict.status, verdict.error) == ("pending", "http_status")
    assert verdict.delay_seconds == pytest.approx(delay_seconds)


def test_what_went_wrong_before_a_status_is_told_by_its_code() -> None:
    verdict = judge(Attempt(problem="timeout"), Standing(1, 0.0), dice=MIDDLE)
    assert (verdict.status, verdict.error, verdict.http_status) == ("pending", "timeout", None)


@pytest.mark.parametrize(("age_days", "status"), [(2.7, "pending"), (2.76, "failed"), (3.0, "failed"), (9.0, "failed")])
def test_after_three_days_it_is_given_up(age_days: float, status: str) -> None:
    """The tenth try would come six hours later: at an age of 2.75 days that is the end of the third day."""
    assert judge(Attempt(503), Standing(9, age_days * DAY), dice=MIDDLE).status == status


@pytest.mark.parametrize(
    ("attempts", "age_days", "failing_days", "over"),
    [(2, 3.1, 0.0, True), (1, 3.1, 1.0, True), (1, 9.0, 0.0, False), (7, 2.9, 2.0, False)],
)
def test_an_old_delivery_is_given_up_without_a_call_when_calls_failed(
    attempts: int, age_days: float, failing_days: float, *, over: bool
) -> None:
    """After a long outage of our own the first call is still made."""
    assert is_over(Standing(attempts, age_days * DAY, failing_days * DAY)) is over


def test_a_receiver_that_says_it_is_gone_is_asked_no_more() -> None:
    verdict = judge(Attempt(410), Standing(1, 0.0), dice=MIDDLE)
    assert (verdict.status, verdict.disable, verdict.http_status) == ("failed", "gone", 410)


@pytest.mark.parametrize(("failing_days", "disable"), [(0.0, None), (4.9, None), (5.0, "failing"), (30.0, "failing")])
def test_an_endpoint_that_failed_for_five_days_is_switched_off(failing_days: float, disable: str | None) -> None:
    assert judge(Attempt(500), Standing(1, 0.0, failing_days * DAY), dice=MIDDLE).disable == disable


@given(st.integers(1, 60), st.floats(0, 1), st.floats(0, 3 * DAY))
def test_a_delivery_is_never_planned_for_after_its_third_day(attempts: int, dice: float, age_seconds: float) -> None:
    verdict = judge(Attempt(500), Standing(attempts, age_seconds), dice=dice)
    assert verdict.status == "failed" or age_seconds + verdict.delay_seconds <= 3 * DAY
