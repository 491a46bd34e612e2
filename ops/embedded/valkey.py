"""One Valkey server in one folder: the doorbell and the shared limits. It forgets everything when it stops."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path

from ops.embedded.binaries import valkey_server
from ops.embedded.ports import LOOPBACK
from ops.embedded.privacy import PASSWORD_BYTES, write_private
from ops.embedded.processes import Command
from ops.embedded.server import Server
from ops.embedded.waiting import StopRequest

STOP_SECONDS = 5.0  # nothing is written
PING_SECONDS = 1.0  # answered within a millisecond as a rule
ANSWER = b"+OK\r\n+PONG\r\n"

CONFIGURATION = """\
bind {host}
port {port}
requirepass {password}
dir "{folder}"
save ""
appendonly {appendonly}
maxmemory 512mb
maxmemory-policy noeviction
"""


class Valkey(Server):
    """A server with a password of its own; also a context manager.

    `appendonly` writes a log, as production does; without it a restart begins empty, which the product must survive.
    """

    name = "valkey"
    title = "Valkey"
    start_seconds = 20.0  # 0.03 s as a rule

    def __init__(
        self, folder: Path, *, appendonly: bool = False, log: Path | None = None, stop: StopRequest | None = None
    ) -> None:
        super().__init__(folder, log=log, stop=stop)
        self._appendonly = appendonly
        self._server = valkey_server()
        self._password = secrets.token_urlsafe(PASSWORD_BYTES)

    def url(self, database: int = 0) -> str:
        """A redis:// URL with the password in it: what COMPACTD_REDIS_URL takes."""
        return f"redis://:{self._password}@{LOOPBACK}:{self.port}/{database}"

    def answers(self) -> bool:
        """Whether it answers a ping with our password."""
        try:
            with socket.create_connection((LOOPBACK, self.port), timeout=PING_SECONDS) as connection:
                connection.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
                return connection.makefile("rb").read(len(ANSWER)) == ANSWER
        except OSError:
            return False

    def command(self) -> Command:
        """The server with our configuration, in a file because every user of a machine can read arguments."""
        configuration = self.folder / "valkey.conf"
        values = {
            "host": LOOPBACK,
            "port": self.port,
            "password": self._password,
            "folder": self.folder,
            "appendonly": "yes" if self._appendonly else "no",
        }
        write_private(configuration, CONFIGURATION.format(**values))
        return Command(
            name=self.title,
            arguments=(str(self._server), str(configuration)),
            folder=self.folder,
            log=self.log,
            stop_seconds=STOP_SECONDS,
        )
