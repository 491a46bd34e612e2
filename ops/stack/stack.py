"""Puts the local stack together: servers, migrations, API and workers; tells stack.json; stops in order."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ops.embedded import Postgres, Valkey
from ops.embedded.databases import MIGRATE_SECONDS
from ops.embedded.errors import LocalError
from ops.embedded.ports import LOOPBACK, free_port, port_problem
from ops.embedded.processes import Command, run_to_end
from ops.embedded.waiting import StopRequest
from ops.stack.folder import StackFolder, StackState
from ops.stack.program import Program
from ops.stack.settings import ROOT, StackSettings
from ops.stack.supervisor import Supervisor

STOP_MARGIN_SECONDS = 10.0  # on top of the drain time, for what a worker does after it
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared with, to tell a person an address that can be opened


@dataclass(frozen=True, slots=True, kw_only=True)
class StackCommands:
    """What the product's processes run; tests put stand-ins here."""

    migrate: tuple[str, ...] = (sys.executable, "-m", "alembic", "upgrade", "head")
    api: tuple[str, ...] = (sys.executable, "-m", "api")
    worker: tuple[str, ...] = (sys.executable, "-m", "worker")
    demo: tuple[str, ...] = (str(Path(sys.executable).with_name("compactd")), "demo")


class Stack:
    """One local stack in a folder that the caller has taken: `start`, `watch`, and `stop` in any case."""

    def __init__(
        self,
        settings: StackSettings,
        folder: StackFolder,
        stop: StopRequest,
        report: Callable[[str], None],
        commands: StackCommands,
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._stop = stop
        self._commands = commands
        self._postgres = Postgres(folder.path / "postgres", log=folder.log("postgres"), stop=stop)
        self._valkey = Valkey(folder.path / "valkey", log=folder.log("valkey"), stop=stop)
        self._api: Program | None = None
        self._workers: list[Program] = []
        self._port = settings.port
        self._supervisor = Supervisor(stop, report, self._tell)

    def start(self) -> StackState:
        """Starts everything and writes stack.json. Raises LocalError or Interrupted; call `stop` then, too."""
        self._choose_port()
        self._postgres.start()
        self._valkey.start()
        self._migrate()
        self._api = self._program("api", self._commands.api, self._api_environ())
        names = ["worker", *(f"worker-{number}" for number in range(2, self._settings.workers + 1))]
        self._workers = [self._program(name, self._commands.worker, self._environ()) for name in names]
        self._supervisor.start([self._postgres, self._valkey])
        self._supervisor.start([self._api, *self._workers])
        self._tell()
        return self._state()

    def watch(self, until: Callable[[], bool]) -> None:
        """Keeps all processes alive until somebody asks to stop or `until` is true."""
        self._supervisor.watch(until)

    def stop(self) -> None:
        """Stops API and workers side by side, then the servers they use."""
        programs = [program for program in (self._api, *self._workers) if program is not None]
        for program in programs:
            program.ask_to_stop()
        for program in programs:
            program.stop(self._stop)
        self._valkey.stop()
        self._postgres.stop()

    @property
    def url(self) -> str:
        """Where the API answers."""
        host = LOOPBACK if self._settings.host in EVERYWHERE else self._settings.host
        return f"http://{host}:{self._port}"

    def _choose_port(self) -> None:
        if self._port == 0:
            self._port = free_port()
        elif (problem := port_problem(self._port, self._settings.host)) is not None:
            raise LocalError(
                f"Port {self._port} {problem}. Set COMPACTD_PORT to another one, or to 0 for any free port."
            )

    def _migrate(self) -> None:
        command = Command(
            name="The migration",
            arguments=self._commands.migrate,
            folder=ROOT,
            log=self._folder.log("migrate"),
            environ=self._environ(),
        )
        run_to_end(command, MIGRATE_SECONDS, self._stop)

    def _program(self, name: str, arguments: tuple[str, ...], environ: dict[str, str]) -> Program:
        ready_file = self._folder.ready_file(name)
        command = Command(
            name=name,
            arguments=arguments,
            folder=ROOT,
            log=self._folder.log(name),
            environ={**environ, "COMPACTD_READY_FILE": str(ready_file)},
            stop_seconds=self._settings.drain_seconds + STOP_MARGIN_SECONDS,
        )
        return Program(command, ready_file)

    def _environ(self) -> dict[str, str]:
        """What migrations, API and workers are told: our servers instead of any others."""
        return {
            **self._settings.environ,
            "COMPACTD_DATABASE_URL": self._postgres.sqlalchemy_url(),
            "COMPACTD_REDIS_URL": self._valkey.url(),
        }

    def _api_environ(self) -> dict[str, str]:
        return {
            **self._environ(),
            "COMPACTD_HOST": self._settings.host,
            "COMPACTD_PORT": str(self._port),
            "COMPACTD_BOOTSTRAP_API_KEY": self._folder.api_key(),
        }

    def _tell(self) -> None:
        self._folder.write_state(self._state())

    def _state(self) -> StackState:
        workers = [worker.pid for worker in self._workers]
        return StackState(
            url=self.url,
            api_key=self._folder.api_key(),
            database_url=self._postgres.url(),
            redis_url=self._valkey.url(),
            pids={
                "supervisor": os.getpid(),
                "api": self._api.pid if self._api else 0,
                "worker": workers[0] if len(workers) == 1 else workers,
                "postgres": self._postgres.pid,
                "valkey": self._valkey.pid,
            },
        )
