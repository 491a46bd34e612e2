"""Writes the lock files anew: all platforms, all hashes, and no host, path or option of this machine in them."""

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

OPTIONS = (
    *("--universal", "--python-version", "3.11", "--generate-hashes"),
    *("--no-emit-index-url", "--no-header", "--no-annotate", "--quiet"),
)
LOCKS = {  # the second one is a part of the first: what the image needs
    "requirements.lock": ("--extra", "local", "--extra", "otel", "--extra", "s3", "--group", "dev"),
    "ops/image/requirements.lock": ("--extra", "otel", "--constraint", "requirements.lock"),
}


def locked_packages(text: str) -> int:
    """How many packages a lock names; raises ValueError if it tells about the machine that wrote it."""
    if found := FOREIGN.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"the lock names a host or an option in line {line}")
    return sum(1 for line in text.splitlines() if line and not line[0].isspace())


def uv() -> Path:
    """uv, from a small environment of its own."""
    program = TOOL / "bin" / "uv"
    if not program.exists():
        venv.EnvBuilder(clear=True, symlinks=True, with_pip=True).create(TOOL)
        subprocess.run([TOOL / "bin" / "python", "-m", "pip", "install", "--quiet", "uv"], check=True)
    return program


def main(arguments: list[str]) -> int:
    """Compiles the locks; versions in use stay unless `--upgrade` is given."""
    environ = {**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    for name, chosen in LOCKS.items():
        command = [str(uv()), "pip", "compile", "pyproject.toml", "--output-file", name, *OPTIONS, *chosen, *arguments]
        subprocess.run(command, cwd=ROOT, env=environ, check=True)
        print(f"{name}: {locked_packages((ROOT / name).read_text())} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
