"""How long a provider or a receiver asks us to wait: Retry-After in seconds, in milliseconds, or as a date."""

from __future__ import annotations

import email.utils
import math
from collections.abc import Mapping

MAX_RETRY_AFTER_SECONDS = 3_600.0  # DESIGN §8: Retry-After is honoured up to an hour
MAX_HEADER_CHARS = 100  # an HTTP date has 29


def retry_after_seconds(headers: Mapping[str, str], *, now_seconds: float) -> float | None:
    """Seconds from now, 0 to an hour; None when absent or unreadable. `now_seconds` is Unix time, for dates."""
    milliseconds = _number(headers.get("retry-after-ms"))
    said = headers.get("retry-after")
    seconds = milliseconds / 1000 if milliseconds is not None else _number(said)
    if seconds is None and said:
        seconds = _until(said[:MAX_HEADER_CHARS], now_seconds)
    return None if seconds is None else min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def _until(said: str, now_seconds: float) -> float | None:
    date = email.utils.parsedate_tz(said)
    if date is None:
        return None
    try:
        return email.utils.mktime_tz(date) - now_seconds
    except (OverflowError, ValueError):
        return None


def _number(said: str | None) -> float | None:
    try:
        number = float(said) if said else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None
