"""Waiting with a limit, and stop requests by signal. Signals only leave a note here; the code reacts where it waits."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType

from ops.embedded.errors import Interrupted

PAUSE_SECONDS = 0.01  # a server is ready after 30 to 500 ms: a finer look would only burn CPU
ECHO_SECONDS = 1.0  # more than an echo takes, less than a person
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Whether somebody asked the program to stop; who asks again a second later means at once.

    A terminal, make and a shell may each pass on the same signal: such echoes come within milliseconds.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self.is_urgent = False
        self._asked_at = 0.0

    def listen(self) -> None:
        """Notes SIGINT, SIGTERM and SIGHUP from now on. Main thread only."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        now = time.monotonic()
        if self.is_asked and now - self._asked_at >= ECHO_SECONDS:
            self.is_urgent = True
        if not self.is_asked:
            self.is_asked, self._asked_at = True, now


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
