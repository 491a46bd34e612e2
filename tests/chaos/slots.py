"""Places where the service's processes run. A process that dies is put back, as a supervisor does in production."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from ops.embedded.processes import Command, Process
from tests.chaos.proxy import Proxy

ROOT = Path(__file__).resolve().parents[2]
LOOK_SECONDS = 0.05
PATIENCE_SECONDS = 60.0  # a process on a busy machine takes a few seconds to start
STOP_SECONDS = 30.0


class Slot:
    """One API or worker, its wires to the servers, and every process that ran here."""

    def __init__(
        self, name: str, module: str, folder: Path, environ: Mapping[str, str], wires: Mapping[str, Proxy]
    ) -> None:
        self.name = name
        self.postgres, self.valkey, self.provider = wires["postgres"], wires["valkey"], wires["provider"]
        self.struck: set[int] = set()  # pids that we killed, froze or cut off
        self.returncodes: list[int] = []  # of processes that were asked to stop
        self.is_wanted = True
        self.is_held = False  # by a fault that goes on: the next one takes another slot
        self._folder = folder
        self._module = module
        self._environ = environ
        self._started = 0
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        """Of the process that runs here now, or ran here last."""
        return self._process.pid if self._process else 0

    @property
    def is_alive(self) -> bool:
        """Whether a process runs here."""
        return self._process is not None and self._process.is_alive

    @property
    def is_ready(self) -> bool:
        """Whether it takes work."""
        return self.is_alive and self._ready_file.exists()

    @property
    def busy_calls(self) -> int:
        """Model calls that this process waits for."""
        return self.provider.busy_links

    def kill(self) -> int:
        """Signal 9; returns how many model calls were under way. The keeper puts a new process here."""
        in_flight = self.busy_calls
        if self.is_alive:
            self.strike()
            self.signal(signal.SIGKILL)
        return in_flight

    def strike(self) -> None:
        """Notes that the process that runs here loses its leases by our hand."""
        self.struck.add(self.pid)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal."""
        if self._process is not None:
            self._process.signal(number)

    def drain(self) -> int | None:
        """SIGTERM, and how the process ended; None when it had to be killed."""
        process = self._process
        if process is None or not process.is_alive:
            return 0
        ended = process.stop()
        self.returncodes.append(process.returncode if ended and process.returncode is not None else -1)
        return process.returncode if ended else None

    def wait_ready(self) -> bool:
        """Whether a process takes work here before our patience ends."""
        return wait(lambda: self.is_ready)

    def settle(self) -> None:
        """Waits until a process that starts is ready or dead: before that SIGTERM would end it without a drain."""
        wait(lambda: self.is_ready or not self.is_alive)

    def revive(self) -> None:
        """Starts a process if none runs; called by the keeper's thread alone."""
        if not self.is_wanted or self.is_alive:
            return
        self._started += 1
        self._process = Process(
            Command(
                name=self.name,
                arguments=(sys.executable, "-m", self._module),
                folder=ROOT,
                log=self._folder / f"{self.name}-{self._started}.log",
                environ={**self._environ, "COMPACTD_READY_FILE": str(self._ready_file)},
                stop_seconds=STOP_SECONDS,
            )
        )

    @property
    def _ready_file(self) -> Path:
        return self._folder / f"{self.name}-{self._started}.ready"


class Keeper:
    """The supervisor: one thread that starts every process, because the kernel ends them with their thread."""

    def __init__(self, slots: Iterable[Slot]) -> None:
        self.slots = list(slots)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for slot in self.slots:
            slot.is_wanted = False
        for slot in self.slots:
            slot.signal(signal.SIGCONT)
            slot.kill() if kind else slot.drain()
        self._stopped.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            for slot in self.slots:
                slot.revive()


def wait(look: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> bool:
    """Whether `look` became true in time."""
    end = time.monotonic() + seconds
    while not look():
        if time.monotonic() > end:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def clean_environ() -> dict[str, str]:
    """Ours, without settings that somebody made for another service."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "COMPACTD_"))}
