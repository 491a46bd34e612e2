"""What every embedded server does alike: starts with a few attempts, says whether it is ready, stops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from ops.embedded.errors import LocalError
from ops.embedded.logs import tail
from ops.embedded.ports import free_port
from ops.embedded.processes import Command, Process
from ops.embedded.waiting import StopRequest, wait_until

START_ATTEMPTS = 3  # a free port may be taken between our look and the server's


class Server(ABC):
    """A child process that listens on a free loopback port and keeps its files in `folder`.

    `log` is where its output goes (default: a file in `folder`); `stop` lets a signal interrupt the waiting.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    start_seconds: ClassVar[float]

    def __init__(self, folder: Path, *, log: Path | None = None, stop: StopRequest | None = None) -> None:
        self.folder = folder.resolve()
        self.log = log or self.folder / f"{self.name}.log"
        self.port = 0  # chosen at the first start, kept over restarts
        self._stop = stop
        self._process: Process | None = None

    @abstractmethod
    def command(self) -> Command:
        """What to run, on `self.port`."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether the running process takes connections; cheap, asked every few milliseconds."""

    def prepare(self) -> None:
        """What has to stand before the first start."""
        self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)

    @property
    def pid(self) -> int:
        """The server's process id; 0 before the first start."""
        return self._process.pid if self._process else 0

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.is_alive

    @property
    def is_ready(self) -> bool:
        """Whether it takes connections."""
        return self.is_alive and self.answers()

    def spawn(self) -> None:
        """Starts the process without waiting for it; on the port of the last start, if any."""
        self.port = self.port or free_port()
        self._process = Process(self.command())

    def start(self) -> Self:
        """Starts and waits until it takes connections. Raises LocalError with the end of its log if it does not."""
        self.prepare()
        for _ in range(START_ATTEMPTS):
            if self._start_once():
                return self
            self.port = 0
        raise LocalError(f"{self.title} did not start. The end of its log:\n{tail(self.log)}")

    def stop(self) -> None:
        """Stops it in order; nothing happens if it does not run."""
        if self._process is not None:
            self._process.stop(self._stop)

    def __enter__(self) -> Self:
        """Starts."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops."""
        self.stop()

    def _start_once(self) -> bool:
        self.spawn()
        started = False
        try:
            wait_until(lambda: self.is_ready or not self.is_alive, self.start_seconds, stop=self._stop)
            started = self.is_ready
        finally:
            if not started:
                self.stop()
        return started
