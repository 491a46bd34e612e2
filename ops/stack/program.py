"""A child process of the product: it runs a command and touches a file when it can work."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ops.embedded.processes import Command, Process
from ops.embedded.waiting import StopRequest


class Service(Protocol):
    """What the supervisor keeps alive: embedded servers and programs of the product."""

    @property
    def name(self) -> str:
        """How it is called in messages and in stack.json."""
        ...

    @property
    def log(self) -> Path:
        """Where its output goes."""
        ...

    @property
    def pid(self) -> int:
        """Its process id; 0 before the first start."""
        ...

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether it can work."""
        ...

    def spawn(self) -> None:
        """Starts the process without waiting."""
        ...


class Program:
    """One process of the API or a worker. `command` must have a log; the program touches `ready_file`."""

    def __init__(self, command: Command, ready_file: Path) -> None:
        if command.log is None:
            raise ValueError(f"{command.name} needs a log")
        self.name = command.name
        self.log = command.log
        self._command = command
        self._ready_file = ready_file
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        """Its process id; 0 before the first start."""
        return self._process.pid if self._process else 0

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.is_alive

    @property
    def is_ready(self) -> bool:
        """Whether this process has touched its ready file."""
        return self.is_alive and self._ready_file.exists()

    def spawn(self) -> None:
        """Starts it without waiting."""
        self._ready_file.unlink(missing_ok=True)
        self._process = Process(self._command)

    def ask_to_stop(self) -> None:
        """Sends the polite signal; several programs stop side by side this way."""
        if self._process is not None:
            self._process.ask_to_stop()

    def stop(self, stop: StopRequest | None = None) -> None:
        """Waits for its end, asking first if nobody has; kills it when it takes too long."""
        if self._process is not None:
            self._process.stop(stop)
