"""How many values a JSON text holds, told from its bytes before anything is decoded.

A text of a few megabytes may hold millions of empty objects, and each becomes an object of a hundred bytes in memory.
What is counted are the marks between values (comma, colon, opening bracket and brace) outside of strings: with the
whole itself never fewer than the values, one for one in a list of numbers and two for each member of an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_BODY_VALUES = 1_000_000  # of one body: 64 MB of real agent logs hold 0.6 to 2.2 million, and may come in parts
MAX_MESSAGE_VALUES = 100_000  # of one message: the densest of real logs has 593
MAX_VIEW_VALUES = 3_000_000  # of one session's live view: twice what the largest real log holds, 100 MB of it

_MARKS = (b",", b":", b"[", b"{")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)  # an unclosed one goes to the end, or each quote would


def holds_more(data: bytes, most: int) -> bool:
    """Whether `data` holds more than `most` values; for anything but JSON some answer, as fast.

    The marks are first counted everywhere, at 500 to 1,000 MB/s; only where that is too many are strings left out. The
    second look ends at the first mark too many.
    """
    return _counted(data, most) > most


def together_hold_more(bodies: Iterable[bytes], most: int) -> bool:
    """The same for all of `bodies` together."""
    left = most
    for body in bodies:
        left -= _counted(body, left)
        if left < 0:
            return True
    return False


def _counted(data: bytes, most: int) -> int:
    """The marks in `data`, or some number over `most` when there are more."""
    everywhere = _marks(data, 0, len(data))
    return everywhere if everywhere <= most else _outside_strings(data, most)


def _outside_strings(data: bytes, most: int) -> int:
    found = end = 0
    for count, string in enumerate(_STRING.finditer(data)):
        found = max(found + _marks(data, end, string.start()), count)  # in JSON each string but one has its own mark
        if found > most:
            return found
        end = string.end()
    return found + _marks(data, end, len(data))


def _marks(data: bytes, start: int, end: int) -> int:
    return sum(data.count(mark, start, end) for mark in _MARKS)
