"""A reply as what goes over the wire and when: a pause, a head, ticks with a pause between them, a tail, an ending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Delays in seconds, already divided. `ending`: keep the connection, close it, or close it with nothing said."""

    delay_s: float = 0.0
    head: bytes = b""
    ticks: Sequence[bytes] = ()
    pause_s: float = 0.0
    tail: bytes = b""
    ending: Literal["keep", "close"] = "keep"
    held: bool = False  # nothing is sent, and no delay begins, before somebody releases it


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """Status line and headers with the empty line."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Overloaded"  # 529 and other inventions
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def whole(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """A complete response with its length."""
    return head(status, {**headers, "content-length": str(len(body))}) + body
