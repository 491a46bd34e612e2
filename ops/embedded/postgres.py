"""One Postgres cluster in one folder: made, started, stopped, taken over after a crash."""

from __future__ import annotations

import signal
from pathlib import Path

from ops.embedded import nobody, postmaster
from ops.embedded.cluster import DATABASE, ROLE, SUPERUSER, Cluster
from ops.embedded.ports import LOOPBACK
from ops.embedded.processes import Command
from ops.embedded.programs import Programs
from ops.embedded.server import Server
from ops.embedded.waiting import StopRequest

STOP_SECONDS = 20.0  # a fast shutdown writes a checkpoint first

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",  # loopback TCP alone, as in production
    "max_connections": "200",  # API, workers, and a test run beside them
    "shared_buffers": "128MB",  # a development machine's share
    "io_method": "sync",  # no I/O worker processes on a small machine
    "jit": "off",  # compiles longer than our queries run
    "log_checkpoints": "off",  # one line every five minutes that nobody reads
}
FAST_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}  # data that may be lost


class Postgres(Server):
    """A cluster under `folder` (`data/`, `passwords.json`) with the database `compactd`; also a context manager.

    `durable=False` gives up crash safety for speed: for throw-away clusters of tests.
    """

    name = "postgres"
    title = "Postgres"
    start_seconds = 60.0  # 0.1 s as a rule; recovery of a large write-ahead log takes longer

    def __init__(
        self, folder: Path, *, durable: bool = True, log: Path | None = None, stop: StopRequest | None = None
    ) -> None:
        super().__init__(folder, log=log, stop=stop)
        self._durable = durable
        self._programs = Programs.find()
        self._passwords: dict[str, str] = {}

    @property
    def data(self) -> Path:
        """The server's data folder."""
        return (self.folder / "data").resolve()

    def url(self, database: str = DATABASE, *, superuser: bool = False) -> str:
        """A libpq URL with the password in it; the superuser is for those who make databases."""
        role = SUPERUSER if superuser else ROLE
        return f"postgresql://{role}:{self._passwords[role]}@{LOOPBACK}:{self.port}/{database}"

    def sqlalchemy_url(self, database: str = DATABASE) -> str:
        """The same for SQLAlchemy: what COMPACTD_DATABASE_URL takes."""
        return self.url(database).replace("postgresql://", "postgresql+psycopg://", 1)

    def prepare(self) -> None:
        """Makes the cluster unless it stands, learns its passwords, sees off a server of an earlier start."""
        super().prepare()
        cluster = Cluster(
            folder=self.folder, programs=self._programs, log=self.log, durable=self._durable, stop=self._stop
        )
        self._passwords = cluster.ensure()

    def spawn(self) -> None:
        """Starts the server without waiting for it, after the last one on this data has gone."""
        postmaster.settle(self.data)
        super().spawn()

    def answers(self) -> bool:
        """Whether the server says in its pid file that it is ready."""
        return postmaster.is_ready(self.data, self.pid)

    def command(self) -> Command:
        """The server with our settings."""
        settings = SETTINGS | ({} if self._durable else FAST_SETTINGS) | {"port": str(self.port)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return Command(
            name=self.title,
            arguments=(self._programs.path("postgres"), "-D", str(self.data), *options),
            folder=self.folder,
            log=self.log,
            identity=self._programs.identity,
            stop_signal=signal.SIGINT,  # fast shutdown: disconnects everybody
            stop_seconds=STOP_SECONDS,
            death_signal=signal.SIGQUIT,  # immediate shutdown of all its processes; the next start recovers
        )

    def remove(self) -> None:
        """Stops and deletes everything."""
        self.stop()
        nobody.remove_folder(self.folder / "data")
        nobody.remove_folder(self.folder)
