"""Postgres's own pid file: whether its server is ready, and what became of the server that ran before."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from ops.embedded.errors import LocalError
from ops.embedded.waiting import wait_until

STATUS_LINE = (
    7  # postmaster.pid, counted from 0: pid, data folder, start, port, socket folder, host, shared memory, status
)
PROC = Path("/proc")  # Linux; elsewhere ps is asked
LEAVE_SECONDS = 5.0  # a server whose parent died is on its way out; it needs half a second


def pid_in(data: Path) -> int | None:
    """The pid that the file names, None without a file (or with half of one)."""
    try:
        return int(_lines(data)[0])
    except (IndexError, ValueError):
        return None


def is_ready(data: Path, pid: int) -> bool:
    """Whether the server of this pid takes connections."""
    lines = _lines(data)
    return len(lines) > STATUS_LINE and lines[0] == str(pid) and lines[STATUS_LINE].strip() == "ready"


def settle(data: Path) -> None:
    """Makes sure that no server of an earlier start is left on this data, and that its pid file stops nobody.

    Call it under the folder's lock only: a server that runs here has lost its parent. Raises LocalError if it stays.
    """
    pid = pid_in(data)
    if pid is None:
        return
    if is_server(pid, data) and not wait_until(lambda: not is_server(pid, data), LEAVE_SECONDS):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGQUIT)
        if not wait_until(lambda: not is_server(pid, data), LEAVE_SECONDS):
            raise LocalError(f"A Postgres of an earlier start (pid {pid}) still uses {data}. End it, then try again.")
    (data / "postmaster.pid").unlink(missing_ok=True)  # after a restart of the machine its pid may be somebody else's


def is_server(pid: int, data: Path) -> bool:
    """Whether the process is a Postgres on this data; a process that only has the same number is not."""
    if PROC.exists():
        try:
            return (PROC / f"{pid}/cwd").readlink() == data.resolve()  # a postmaster lives in its data folder
        except OSError:
            return False
    command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    return f" -D {data.resolve()} " in listed.stdout  # our settings follow


def _lines(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []
