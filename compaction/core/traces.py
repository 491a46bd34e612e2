"""Trace context as W3C writes it: the `traceparent` that a caller sends goes with its job into the worker's log."""

from __future__ import annotations

import re

# version-trace-parent-flags; version ff and ids of zeros alone are not allowed
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


def traceparent(given: str | None) -> str | None:
    """`given` when it is a trace context, else None: a broken one is no reason to refuse a request."""
    return given if trace_id(given) else None


def trace_id(given: str | None) -> str | None:
    """The trace that a `traceparent` belongs to; None when it is none."""
    match = _TRACEPARENT.fullmatch(given or "")
    return match[1] if match else None
