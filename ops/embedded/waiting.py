"""Waiting with a limit, and stop requests by signal. Signals only leave a note here; the code reacts where it waits."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType

from ops.embedded.errors import Interrupted

PAUSE_SECONDS = 0.01  # a server is ready after 30 to 500 ms: a finer look would only burn CPU
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Whether somebody asked the program to stop, and how often: the second time they mean at once."""

    def __init__(self) -> None:
        self.count = 0

    def listen(self) -> None:
        """Notes SIGINT, SIGTERM and SIGHUP from now on. Main thread only."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.count += 1

    @property
    def is_asked(self) -> bool:
        """Asked at least once."""
        return self.count > 0

    @property
    def is_urgent(self) -> bool:
        """Asked again while the first request was being carried out."""
        return self.count > 1


def wait_until(
    check: Callable[[], bool], seconds: float, *, stop: StopRequest | None = None, pause_seconds: float = PAUSE_SECONDS
) -> bool:
    """True as soon as `check` is, False after so many seconds. Raises Interrupted when `stop` is asked meanwhile."""
    deadline = time.monotonic() + seconds
    while not check():
        if stop is not None and stop.is_asked:
            raise Interrupted
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause_seconds)
    return True
