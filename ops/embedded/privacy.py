"""Secrets on disk: files that only their owner may read, complete or not there."""

from __future__ import annotations

import os
from pathlib import Path

PASSWORD_BYTES = 24  # 192 bits


def write_private(path: Path, text: str) -> None:
    """Writes the file at once, with mode 0600; a reader sees the old text or the new one."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.unlink(missing_ok=True)
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    half.replace(path)
