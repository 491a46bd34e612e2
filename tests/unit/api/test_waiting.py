from __future__ import annotations

import pytest

from api.waiting import preferred_wait_seconds


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [
        ("wait=10", 10),
        ("WAIT=10", 10),
        ('wait="10"', 10),
        ("respond-async, wait=10", 10),
        ("wait=10; foo=bar", 10),
        ("wait = 10", 10),
        ("wait=0", 0),
        ("wait=1000", 60),
        (None, None),
        ("", None),
        ("respond-async", None),
        ("wait=", None),
        ("wait=-1", None),
        ("wait=1.5", None),
        ("await=10", None),
        ("wait=9999999", None),
    ],
)
def test_the_wait_is_read_from_the_preferences_and_cut_to_what_is_allowed(
    prefer: str | None, seconds: int | None
) -> None:
    assert preferred_wait_seconds(prefer, 60.0) == seconds
