"""Writes requirements.lock anew: all platforms, all hashes, and no host, path or option of this machine in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOL = ROOT / ".cache" / "uv"
FOREIGN = re.compile(r"://|^--", re.MULTILINE)  # an index, a file or an option of the machine that wrote the lock

# fmt: off
COMPILE = [
    "pip", "compile", "pyproject.toml", "--output-file", "requirements.lock",
    "--universal", "--python-version", "3.11", "--generate-hashes", "--extra", "local", "--group", "dev",
    "--no-emit-index-url", "--no-header", "--no-annotate", "--quiet",
]
# fmt: on


def locked_packages(text: str) -> int:
    """How many packages a lock names; raises ValueError if it tells about the machine that wrote it."""
    if found := FOREIGN.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"requirements.lock names a host or an option in line {line}")
    return sum(1 for line in text.splitlines() if line and not line[0].isspace())


def main(arguments: list[str]) -> int:
    """Compiles the lock with uv from its own small environment; versions in use stay unless `--upgrade` is given."""
    uv = TOOL / "bin" / "uv"
    if not uv.exists():
        venv.EnvBuilder(clear=True, symlinks=True, with_pip=True).create(TOOL)
        subprocess.run([TOOL / "bin" / "python", "-m", "pip", "install", "--quiet", "uv"], check=True)
    env = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    subprocess.run([uv, *COMPILE, *arguments], cwd=ROOT, env=env, check=True)
    count = locked_packages((ROOT / "requirements.lock").read_text())
    print(f"requirements.lock: {count} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
