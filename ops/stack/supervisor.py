"""Keeps services alive: notices the dead, starts them again after a pause, keeps their logs within bounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ops.embedded.errors import LocalError
from ops.embedded.logs import bound_log, tail
from ops.embedded.waiting import StopRequest, wait_until
from ops.stack.program import Service

TICK_SECONDS = 0.1  # how soon a dead child or a signal is noticed; ten looks a second cost nothing
LOG_SECONDS = 5.0  # a child cannot fill a disk in that time
FIRST_PAUSE_SECONDS = 0.5  # a crash by accident is over at once
MAX_PAUSE_SECONDS = 30.0  # a crash by mistake: a person has to look
STEADY_SECONDS = 30.0  # who has lived so long starts with the first pause again
START_SECONDS = 60.0  # imports take two seconds; a busy machine may need many times that


def pause_seconds(failures: int) -> float:
    """How long to wait before start number `failures` + 1: 0.5, 1, 2 … 30 seconds."""
    return min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 10))


class Keeper:
    """Restarts one service; told the time, so that it needs no clock."""

    def __init__(self, service: Service, report: Callable[[str], None]) -> None:
        self.service = service
        self._report = report
        self._failures = 0
        self._started = 0.0
        self._due: float | None = None
        self._is_returning = False

    def begin(self, now: float) -> None:
        """Starts the service for the first time, or notes that it runs."""
        if not self.service.is_alive:
            self.service.spawn()
        self._started = now

    def look(self, now: float) -> bool:
        """Does what is due. True if the service has a new process."""
        if self.service.is_alive:
            self._greet()
            return False
        if self._due is None:
            self._failures = 1 if now - self._started >= STEADY_SECONDS else self._failures + 1
            pause = pause_seconds(self._failures)
            self._due = now + pause
            self._report(f"{self.service.name} (pid {self.service.pid}) ended; starting it again in {pause:g} s")
        if now < self._due:
            return False
        self.service.spawn()
        self._due, self._started, self._is_returning = None, now, True
        return True

    def _greet(self) -> None:
        if self._is_returning and self.service.is_ready:
            self._is_returning = False
            self._report(f"{self.service.name} runs again (pid {self.service.pid})")


class Supervisor:
    """Watches over services. `changed` is called after each restart, `stop` ends all waiting."""

    def __init__(self, stop: StopRequest, report: Callable[[str], None], changed: Callable[[], None]) -> None:
        self._keepers: list[Keeper] = []
        self._stop = stop
        self._report = report
        self._changed = changed
        self._logs_looked_at = 0.0

    def start(self, services: Sequence[Service], seconds: float = START_SECONDS) -> None:
        """Starts services side by side and waits until all are ready; from then on they are kept alive.

        Raises LocalError with the end of the log of one that ends or does not get ready, Interrupted on a signal.
        """
        keepers = [Keeper(service, self._report) for service in services]
        for keeper in keepers:
            keeper.begin(time.monotonic())
        wait_until(lambda: all(s.is_ready or not s.is_alive for s in services), seconds, stop=self._stop)
        for service in services:
            if not service.is_ready:
                what = "is not ready" if service.is_alive else "ended"
                raise LocalError(f"{service.name} {what}. The end of {service.log}:\n{tail(service.log)}")
        self._keepers.extend(keepers)

    def watch(self, until: Callable[[], bool]) -> None:
        """Keeps the services alive until somebody asks to stop or `until` is true."""
        while not self._stop.is_asked and not until():
            self._look(time.monotonic())
            time.sleep(TICK_SECONDS)

    def _look(self, now: float) -> None:
        if sum(keeper.look(now) for keeper in self._keepers):  # a sum looks at each of them
            self._changed()
        if now - self._logs_looked_at >= LOG_SECONDS:
            self._logs_looked_at = now
            for keeper in self._keepers:
                bound_log(keeper.service.log)
