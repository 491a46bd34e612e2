"""Removes what the make targets made: the environment, caches, the local stack. Refuses while that runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ops.embedded import nobody
from ops.stack.folder import StackFolder
from ops.stack.settings import ROOT

# fmt: off
MADE = (
    ".venv", ".local", ".cache", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".import_linter_cache",
    "htmlcov", "build", "dist",
)
# fmt: on


def clean(root: Path) -> bool:
    """Removes it all under `root`; False, and nothing is touched, while a stack runs there."""
    local = root / ".local"
    if local.exists():
        folder = StackFolder(local)
        if not folder.take():
            return False
        folder.leave()
        nobody.remove_folder(local / "postgres" / "data")  # may be a link to a place outside
    for name in MADE:
        shutil.rmtree(root / name, ignore_errors=True)
    for trace in root.glob(".coverage*"):
        trace.unlink()
    for cache in root.rglob("__pycache__"):
        shutil.rmtree(cache, ignore_errors=True)
    return True


def main() -> int:
    """Cleans this checkout."""
    if not clean(ROOT):
        print("The local stack is running in .local: stop it first (Ctrl-C in its terminal).", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
