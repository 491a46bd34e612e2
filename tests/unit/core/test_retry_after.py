"""Retry-After in its three forms, and in none."""

from __future__ import annotations

import pytest

from compaction.core.retry_after import MAX_RETRY_AFTER_SECONDS, retry_after_seconds

NOON = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT
HEADERS = [
    ({"retry-after": "7"}, 7.0),
    ({"retry-after": "0.5"}, 0.5),
    ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
    ({"retry-after": "Fri, 15 Jan 2027 08:01:30 GMT"}, 90.0),
    ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0),
    ({"retry-after": "-3"}, 0.0),
    ({"retry-after": "86400"}, MAX_RETRY_AFTER_SECONDS),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "inf"}, None),
    ({"retry-after": ""}, None),
    ({"retry-after": "Fri, 99 Jan 999999 99:99:99 GMT"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("headers", "seconds"), HEADERS)
def test_a_wait_is_read_as_seconds_milliseconds_or_a_date_and_bounded(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after_seconds(headers, now_seconds=NOON) == seconds
