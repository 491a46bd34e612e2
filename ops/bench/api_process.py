"""One API process of a bench, with its servers."""

from __future__ import annotations

import json
import resource
import sys

from ops.bench.meter import Meter
from ops.bench.servers import Servers
from ops.embedded.processes import Command, Process
from ops.embedded.waiting import wait_until
from ops.stack.settings import ROOT

KEY = "ck_benchkey_" + "b" * 43
START_SECONDS = 60.0
DESCRIPTORS = 16_384  # 2,200 callers, with room; the soft limit is 1,024 on many systems


class ApiProcess(Servers):
    """`with ApiProcess() as api:` it listens at `port`, on a Postgres and a Valkey of its own.

    Postgres does not wait for the disk here: what is measured is the API, and a busy disk would hide it.
    """

    port: int

    def __init__(self) -> None:
        super().__init__(durable=False)

    def begin(self) -> None:
        """Starts the API, with as many descriptors as we may have."""
        raise_descriptor_limit()
        ready, log = self.folder / "api.ready", self.folder / "api.log"
        environ = self.environ() | {
            "COMPACTD_PORT": "0",
            "COMPACTD_READY_FILE": str(ready),
            "COMPACTD_BOOTSTRAP_API_KEY": KEY,
            "COMPACTD_MAX_WAIT_SECONDS": "600",
        }
        arguments = (sys.executable, "-m", "api")
        self._process = Process(Command(name="api", arguments=arguments, folder=ROOT, log=log, environ=environ))
        self.resources.callback(self._process.stop)
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
