"""Under whom Postgres runs: it refuses root. No user is made and no folder above the data is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

LAUNCHER = Path(__file__).with_name("launch.py")
PROBE_SECONDS = 20.0  # starting a program takes 50 ms; a busy machine may need more


class Identity(StrEnum):
    """Who a child process is."""

    OURSELVES = "ourselves"
    NAMESPACE = "namespace"  # root, seen as nobody inside a one-entry user namespace: files stay root's
    NOBODY = "nobody"  # setuid, where namespaces are forbidden (Docker's default): files are chowned


def launch_arguments(identity: Identity, death_signal: int, program: list[str]) -> list[str]:
    """The command line that starts `program` under an identity and ends it with this process."""
    return [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), str(int(death_signal)), identity, *program]


def choose_identity(program: Path, environ: Mapping[str, str] = os.environ) -> Identity:
    """Ourselves unless we are root; then a namespace where one can be had (COMPACTD_LOCAL_ROOT=nobody says no)."""
    if os.geteuid() != 0:
        return Identity.OURSELVES
    if environ.get("COMPACTD_LOCAL_ROOT") == Identity.NOBODY or not _namespace_works(program):
        return Identity.NOBODY
    return Identity.NAMESPACE


def _namespace_works(program: Path) -> bool:
    """Whether the program starts in a namespace; asked once per start, 50 ms."""
    command = launch_arguments(Identity.NAMESPACE, 9, [str(program), "--version"])
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=PROBE_SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False
