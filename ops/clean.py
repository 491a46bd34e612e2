"""Removes what the other commands made: the environment, caches, the local stack's data. Refuses while a stack runs."""

from __future__ import annotations

import fcntl
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MADE = (
    ".venv",
    ".local",
    ".cache",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    ".import_linter_cache",
    "htmlcov",
    "build",
    "dist",
)


def is_running(folder: Path) -> bool:
    """Whether a supervisor holds the folder's lock."""
    try:
        with (folder / "lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def main() -> int:
    """Removes the folders; says so and does nothing while the local stack runs."""
    if is_running(ROOT / ".local"):
        print("The local stack is running in .local: stop it first (Ctrl-C in its terminal).", file=sys.stderr)
        return 1
    for name in MADE:
        shutil.rmtree(ROOT / name, ignore_errors=True)
    for cache in [*ROOT.rglob("__pycache__"), *ROOT.glob(".coverage*")]:
        shutil.rmtree(cache, ignore_errors=True) if cache.is_dir() else cache.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
