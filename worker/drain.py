"""How a worker ends: no new jobs, then time for those that run, then they are given back, then the process is gone.

first SIGTERM ── running jobs go on ──▶ given back ── their commits ──▶ exit 0
                      └── second SIGTERM: given back now   └── too late: exit 1, the leases end by themselves
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

from compaction import telemetry
from worker.heartbeat import Heart

RELEASE_SECONDS = 20.0  # facts/queue.md §3.5: so long before the end of the drain, what still runs is given back
HURRY_SECONDS = 5.0  # after a second signal: a commit takes milliseconds
GOODBYE_SECONDS = 15.0  # for closing connections when no job is left; a second as a rule
LATE = 1  # the exit code of a drain that did not end in time

_log = telemetry.logger("drain")


class Drain:
    """The end of one worker process. `leave` ends it with a code when nothing else does."""

    def __init__(self, heart: Heart, drain_seconds: float, leave: Callable[[int], None] = os._exit) -> None:
        self._heart = heart
        self._drain_seconds = drain_seconds
        self._leave = leave
        self._hurry = threading.Event()

    def begin(self) -> None:
        """No new claims from now on; the rest happens in a thread of its own. May be called again."""
        if self._heart.draining:
            return
        self._heart.drain()
        threading.Thread(target=self._run, daemon=True, name="compactd-drain").start()

    def hurry(self) -> None:
        """What still runs is given back now."""
        self._hurry.set()

    def listen(self) -> None:
        """From now on a second signal hurries; the first one goes where it went before. For the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)

            def handle(got: int, frame: FrameType | None, before: object = before) -> None:
                if self._heart.draining:
                    self.hurry()
                elif callable(before):
                    before(got, frame)

            signal.signal(number, handle)

    def _run(self) -> None:
        end = time.monotonic() + max(self._drain_seconds, HURRY_SECONDS)
        hurried = self._hurry.wait(max(0.0, self._drain_seconds - RELEASE_SECONDS))
        held = self._heart.held()
        for one in held:
            one.stop("drain")
        _log.info("drain.released", jobs=len(held))
        if not hurried and self._hurry.wait(end - time.monotonic()):
            hurried = True
        time.sleep(HURRY_SECONDS if hurried else 0.0)
        if not self._heart.held():
            time.sleep(GOODBYE_SECONDS)
        _log.error("drain.late", jobs=len(self._heart.held()))
        self._leave(LATE)
