"""`python -m api` as a process, for tests that need a socket."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compaction.settings import Settings
from tests.integration.api.conftest import KEY

START_SECONDS = 60  # a busy machine imports slowly


class Server:
    """A running `python -m api`."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, ready: dict[str, int]) -> None:
        self.process = process
        self.log = log
        self.port = ready["port"]
        self.url = f"http://127.0.0.1:{self.port}"

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


@contextmanager
def serving(settings: Settings, folder: Path, **environment: str) -> Iterator[Server]:
    ready_file, log = folder / "api.ready", folder / "api.log"
    environ = {
        "PATH": os.environ["PATH"],
        "COMPACTD_DATABASE_URL": settings.database_url,
        "COMPACTD_REDIS_URL": settings.redis_url,
        "COMPACTD_BOOTSTRAP_API_KEY": KEY,
        "COMPACTD_KEY_PEPPER": settings.key_pepper,
        "COMPACTD_PORT": "0",
        "COMPACTD_READY_FILE": str(ready_file),
        **environment,
    }
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "api"], env=environ, stdout=output, stderr=output)
    try:
        until = time.monotonic() + START_SECONDS
        while not ready_file.exists():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        yield Server(process, log, json.loads(ready_file.read_text()))
    finally:
        process.kill()
        process.wait()
