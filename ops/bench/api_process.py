"""One API process of a bench, with its servers."""

from __future__ import annotations

import json
import os
import resource
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from ops.bench.meter import Meter
from ops.embedded import Postgres, Valkey
from ops.embedded.databases import alembic
from ops.embedded.processes import Command, Process
from ops.embedded.waiting import wait_until
from ops.stack.settings import ROOT

KEY = "ck_benchkey_" + "b" * 43
START_SECONDS = 60.0
DESCRIPTORS = 16_384  # 2,200 callers, with room; the soft limit is 1,024 on many systems


class ApiProcess:
    """`with ApiProcess() as api:` it listens at `port`, on a Postgres and a Valkey of its own.

    Postgres does not wait for the disk here: what is measured is the API, and a busy disk would hide it.
    """

    port: int
    database_url: str

    def __init__(self) -> None:
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        """Starts everything, with as many descriptors as we may have."""
        raise_descriptor_limit()
        enter = self._resources.enter_context
        try:
            folder = Path(enter(TemporaryDirectory(prefix="compactd-bench-")))
            postgres = Postgres(folder / "postgres", durable=False)
            self._resources.callback(postgres.remove)
            postgres.start()
            valkey = enter(Valkey(folder / "valkey"))
            self.database_url = postgres.sqlalchemy_url()
            alembic(self.database_url, folder / "alembic.log", "upgrade", "head")
            self._start(folder, valkey.url())
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops everything."""
        self._resources.close()

    def _start(self, folder: Path, redis_url: str) -> None:
        ready, log = folder / "api.ready", folder / "api.log"
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "COMPACTD_"))}
        environ = mine | {
            "COMPACTD_DATABASE_URL": self.database_url,
            "COMPACTD_REDIS_URL": redis_url,
            "COMPACTD_PORT": "0",
            "COMPACTD_READY_FILE": str(ready),
            "COMPACTD_BOOTSTRAP_API_KEY": KEY,
            "COMPACTD_MAX_WAIT_SECONDS": "600",
        }
        arguments = (sys.executable, "-m", "api")
        self._process = Process(Command(name="api", arguments=arguments, folder=ROOT, log=log, environ=environ))
        self._resources.callback(self._process.stop)
        if not wait_until(ready.exists, START_SECONDS):
            raise RuntimeError(f"the API did not start:\n{log.read_text()[-2000:]}")
        self.port = json.loads(ready.read_text(encoding="ascii"))["port"]

    @property
    def meter(self) -> Meter:
        """What it uses."""
        return Meter(self._process.pid)


def raise_descriptor_limit() -> None:
    """Lets this process and its children open DESCRIPTORS files, or as many as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
