"""One child process: started so that it ends with us, stopped politely and then firmly."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ops.embedded.errors import LocalError
from ops.embedded.identity import Identity, launch_arguments
from ops.embedded.logs import open_log, tail
from ops.embedded.waiting import StopRequest, wait_until

KILL_SECONDS = 10.0  # a killed process is gone at once unless the disk hangs


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run. `environ` replaces the environment (None: ours); `log` takes both outputs (None: ours are used)."""

    name: str
    arguments: tuple[str, ...]
    folder: Path
    log: Path | None
    environ: Mapping[str, str] | None = None
    identity: Identity = Identity.OURSELVES
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    death_signal: signal.Signals = signal.SIGKILL  # sent by the kernel when we die


class Process:
    """A running command. The thread that starts it must live as long as it: the kernel binds it to that thread."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self._is_asked = False
        arguments = launch_arguments(command.identity, command.death_signal, list(command.arguments))
        if command.log is None:  # in the foreground: the terminal's Ctrl-C reaches it too
            self._popen = subprocess.Popen(arguments, cwd=command.folder, env=command.environ)
            return
        with open_log(command.log) as log:
            self._popen = subprocess.Popen(
                arguments,
                cwd=command.folder,
                env=command.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C goes to us alone; we stop our children in order
            )

    @property
    def pid(self) -> int:
        """The process id of the program itself."""
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """How it ended, None while it runs; minus the signal's number if one ended it."""
        return self._popen.poll()

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.returncode is None

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal; nothing happens if it has ended."""
        if self.is_alive:
            os.kill(self.pid, number)

    def ask_to_stop(self) -> None:
        """Sends the polite signal once: the second one means hurry to many programs."""
        if not self._is_asked:
            self._is_asked = True
            self.signal(self.command.stop_signal)

    def stop(self, stop: StopRequest | None = None) -> bool:
        """Asks it to end and waits; kills it after `stop_seconds` or when `stop` is urgent. False if it was killed."""
        self.ask_to_stop()
        wait_until(lambda: not self.is_alive or (stop is not None and stop.is_urgent), self.command.stop_seconds)
        if not self.is_alive:
            return True
        self.signal(self.command.death_signal)
        if not wait_until(lambda: not self.is_alive, KILL_SECONDS):
            self.signal(signal.SIGKILL)
            self._popen.wait()
        return False


def run_to_end(command: Command, seconds: float, stop: StopRequest | None = None) -> None:
    """Runs a command that must succeed. Raises LocalError with the end of its log, Interrupted when `stop` is asked."""
    process = Process(command)
    try:
        ended = wait_until(lambda: not process.is_alive, seconds, stop=stop)
    finally:
        if process.is_alive:
            process.stop()
    if not ended:
        raise LocalError(f"{command.name} did not end within {seconds:.0f} s.")
    if process.returncode != 0:
        shown = tail(command.log) if command.log else ""
        raise LocalError(f"{command.name} failed:\n{shown}")
