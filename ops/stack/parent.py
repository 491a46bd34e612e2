"""A parent that was interrupted and does not say so: make, when SIGINT was sent to it alone.

At a terminal Ctrl-C reaches make and us alike. So make passes SIGTERM on to its recipe, but not SIGINT: it waits in
its handler until the recipe ends by itself, and `kill -INT` of its pid alone would stop nothing. The kernel blocks a
signal while its handler runs; that shows in /proc/PID/status, and is all that shows.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from ops.embedded.waiting import StopRequest

LOOK_SECONDS = 0.2  # a person waits no longer; five reads of a small file in a second cost nothing


def is_in_handler(parent: int, number: signal.Signals) -> bool:
    """Whether the process handles this signal right now: it is blocked there. False where there is no /proc."""
    try:
        lines = Path(f"/proc/{parent}/status").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return False
    blocked = next((line.split()[1] for line in lines if line.startswith("SigBlk:")), "0")
    return bool(int(blocked, 16) >> (number - 1) & 1)


def follow_interrupts(parent: int, stop: StopRequest) -> None:
    """From now on a SIGINT that only the parent got stops us too. Nothing when it blocks SIGINT anyhow."""
    if not is_in_handler(parent, signal.SIGINT):
        threading.Thread(target=_watch, args=(parent, stop), name="parent", daemon=True).start()


def _watch(parent: int, stop: StopRequest) -> None:
    over = threading.Event()
    while not stop.is_asked and os.getppid() == parent:
        if is_in_handler(parent, signal.SIGINT):
            os.kill(os.getpid(), signal.SIGINT)
            return
        over.wait(LOOK_SECONDS)
