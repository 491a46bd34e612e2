"""Threads give no memory back by themselves: a worker that has grown too large asks itself to end, as an operator may.

It takes no new jobs, finishes what it has or gives it back, and exits with 0; its supervisor starts a new one.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

from compaction import telemetry

LOOK_SECONDS = 5.0
STATM = Path("/proc/self/statm")

_log = telemetry.logger("memory")


def resident_mb() -> float | None:
    """The memory that this process holds, in MiB; None where the system does not tell."""
    try:
        pages = int(STATM.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def ask_to_end() -> None:
    """As the operator asks: SIGTERM."""
    os.kill(os.getpid(), signal.SIGTERM)


async def watch(
    limit_mb: float,
    *,
    end: Callable[[], None] = ask_to_end,
    resident: Callable[[], float | None] = resident_mb,
    look_seconds: float = LOOK_SECONDS,
) -> None:
    """Calls `end` once when the process holds more than `limit_mb`."""
    while (held := resident()) is not None:
        if held > limit_mb:
            _log.warning("memory.over_limit", held_mb=round(held), limit_mb=limit_mb)
            end()
            return
        await asyncio.sleep(look_seconds)
    _log.warning("memory.unknown", limit_mb=limit_mb)
