"""Makes a Postgres cluster: initdb, then our role and database before anybody can connect; all or nothing."""

from __future__ import annotations

import json
import platform
import secrets
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ops.embedded import nobody
from ops.embedded.errors import LocalError
from ops.embedded.identity import Identity, launch_arguments
from ops.embedded.privacy import PASSWORD_BYTES, write_private
from ops.embedded.processes import Command, run_to_end
from ops.embedded.programs import Programs
from ops.embedded.waiting import StopRequest

DATABASE = "compactd"
ROLE = "compactd"  # the product's role: no superuser, as in production
SUPERUSER = "postgres"
INIT_SECONDS = 120.0  # 0.5 s as a rule

INITDB_OPTIONS = (
    f"--username={SUPERUSER}",
    "--auth=reject",  # until our own pg_hba.conf is written
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",  # the same order of text on every system
    "--locale=C",
    "--no-instructions",
)
# One call for the whole file system instead of one per file: 1.8 s instead of 7.9 s on a busy disk. Linux only.
SYNC_OPTIONS = ("--sync-method=syncfs",) if platform.system() == "Linux" else ()
HBA = "host all all 127.0.0.1/32 scram-sha-256\n"  # passwords over loopback, nothing else


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """`folder/data` and `folder/passwords.json`; `durable=False` does not wait for the disk."""

    folder: Path
    programs: Programs
    log: Path
    durable: bool
    stop: StopRequest | None

    def ensure(self) -> dict[str, str]:
        """The passwords of the two roles, of a cluster that stands now. What an interrupted start left is thrown away.

        Raises LocalError if initdb fails or the passwords of a cluster are gone, Interrupted when `stop` is asked.
        """
        passwords_file = self.folder / "passwords.json"
        data = self.folder / "data"
        if not data.exists():
            making = self.folder / "making"
            nobody.remove_folder(making)
            passwords = {role: secrets.token_urlsafe(PASSWORD_BYTES) for role in (SUPERUSER, ROLE)}
            self._make(making, passwords)
            write_private(passwords_file, json.dumps(passwords))
            making.rename(data)
        if not passwords_file.exists():
            raise LocalError(f"{passwords_file} is missing: put it back, or remove {self.folder} and its data.")
        known: dict[str, str] = json.loads(passwords_file.read_text())
        return known

    def _make(self, making: Path, passwords: dict[str, str]) -> None:
        if self.programs.identity is Identity.NOBODY:
            real = nobody.make_folder(making)
        else:
            making.mkdir(mode=0o700)
            real = making
        self._initdb(real)
        (real / "pg_hba.conf").write_text(HBA)
        statements = (
            f"ALTER ROLE {SUPERUSER} PASSWORD '{passwords[SUPERUSER]}'",
            f"CREATE ROLE {ROLE} LOGIN PASSWORD '{passwords[ROLE]}'",
            f"CREATE DATABASE {DATABASE} OWNER {ROLE}",
        )
        self._run_alone(real, "".join(f"{statement}\n" for statement in statements))

    def _initdb(self, data: Path) -> None:
        sync = SYNC_OPTIONS if self.durable else ("--no-sync",)
        command = Command(
            name="initdb",
            arguments=(self.programs.path("initdb"), "-D", str(data), *INITDB_OPTIONS, *sync),
            folder=self.folder,
            log=self.log,
            identity=self.programs.identity,
        )
        run_to_end(command, INIT_SECONDS, self.stop)

    def _run_alone(self, data: Path, statements: str) -> None:
        """Runs statements, one a line, in single-user mode: no port is open, so nobody is faster than the passwords."""
        command = [self.programs.path("postgres"), "--single", "-D", str(data), "-c", "exit_on_error=on", "postgres"]
        done = subprocess.run(
            launch_arguments(self.programs.identity, signal.SIGKILL, command),
            cwd=self.folder,
            input=statements,
            capture_output=True,
            text=True,
            check=False,
            timeout=INIT_SECONDS,
        )
        if done.returncode != 0:
            raise LocalError(f"Postgres could not make its first database (exit code {done.returncode}).")
