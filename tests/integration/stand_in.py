"""Stands in for an API, a worker, a migration or a demo in tests of the local stack: `stand_in.py ROLE [ARG]`."""

from __future__ import annotations

import http.server
import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn


def end(number: int, frame: object) -> NoReturn:
    """A clean end when asked to stop."""
    del number, frame
    sys.exit(0)


def api() -> None:
    """Listens where it is told, gets ready, serves files."""
    address = (os.environ["COMPACTD_HOST"], int(os.environ["COMPACTD_PORT"]))
    with http.server.ThreadingHTTPServer(address, http.server.SimpleHTTPRequestHandler) as server:
        Path(os.environ["COMPACTD_READY_FILE"]).touch()
        server.serve_forever()


def worker() -> None:
    """Gets ready and waits."""
    Path(os.environ["COMPACTD_READY_FILE"]).touch()
    while True:
        time.sleep(60)


def demo() -> None:
    """Prints what it was told; its exit code is 3 with a file and 0 without."""
    print(os.environ["COMPACTD_URL"], os.environ["COMPACTD_API_KEY"], *sys.argv[2:], flush=True)
    sys.exit(3 if sys.argv[2:] else 0)


def broken() -> None:
    """Ends at once with a message."""
    sys.exit("COMPACTD_SOMETHING must be a number")


def slow() -> None:
    """Never gets ready."""
    time.sleep(600)


def nothing() -> None:
    """Works well and ends."""


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, end)
    roles = {"api": api, "worker": worker, "demo": demo, "broken": broken, "slow": slow, "nothing": nothing}
    roles[sys.argv[1]]()
