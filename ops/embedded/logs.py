"""Log files of child processes: appended to by the child itself, kept within a size by the supervisor."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import IO

LIMIT_BYTES = 10_000_000  # about a day of a busy development stack; the one before is kept beside it
TAIL_BYTES = 4_000  # holds the last lines of any log
TAIL_LINES = 12  # what fits on a screen below the message that explains it


def open_log(path: Path) -> IO[bytes]:
    """Opens a log for appending; only its owner may read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def bound_log(path: Path, limit_bytes: int = LIMIT_BYTES) -> bool:
    """Moves the content of a log that is too large to `<name>.1`; the child keeps writing to the same file."""
    if not path.exists() or path.stat().st_size <= limit_bytes:
        return False
    shutil.copyfile(path, path.with_name(f"{path.name}.1"))
    os.truncate(path, 0)  # safe because the child appends
    return True


def tail(path: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log, indented, for a message to a person; empty if there are none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - TAIL_BYTES))
            text = log.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])
