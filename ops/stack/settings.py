"""Where the local stack lives and how large it is, from the environment; the rest passes through to API and worker."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ops.embedded.errors import LocalError

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_PORT = 8080  # DESIGN §7
DEFAULT_CONCURRENCY = "300"  # DESIGN §8
DEFAULT_DRAIN_SECONDS = "25"  # who presses Ctrl-C waits for it; running jobs go back to the queue after five seconds
LOOPBACK_HOSTS = ("127.0.0.1", "localhost")
MAX_DRAIN_SECONDS = 3_600  # an hour: longer than any job
MAX_PORT = 65_535
MAX_WORKERS = 64  # more processes than any development machine has cores


@dataclass(frozen=True, slots=True, kw_only=True)
class StackSettings:
    """`port` 0 means any free one; `workers` counts processes; `environ` is what API and worker inherit."""

    folder: Path
    host: str
    port: int
    workers: int
    drain_seconds: float
    environ: Mapping[str, str]

    @classmethod
    def read(cls, environ: Mapping[str, str], *, default_port: int = DEFAULT_PORT) -> Self:
        """The settings in `environ`; empty values count as unset. Raises LocalError with the name of a wrong one."""
        folder = Path(environ.get("COMPACTD_LOCAL_DIR") or ROOT / ".local").expanduser()
        drain = environ.get("COMPACTD_DRAIN_SECONDS") or DEFAULT_DRAIN_SECONDS
        return cls(
            folder=folder.absolute(),
            host=environ.get("COMPACTD_HOST") or "127.0.0.1",
            port=_whole_number(environ, "COMPACTD_PORT", default_port, 0, MAX_PORT),
            workers=_whole_number(environ, "COMPACTD_WORKERS", 1, 1, MAX_WORKERS),
            drain_seconds=_seconds("COMPACTD_DRAIN_SECONDS", drain),
            environ={
                "COMPACTD_WORKER_CONCURRENCY": DEFAULT_CONCURRENCY,
                "COMPACTD_DRAIN_SECONDS": drain,
                **{name: value for name, value in environ.items() if value},
                **{name: _without_proxy(environ.get(name, "")) for name in ("NO_PROXY", "no_proxy")},
            },
        )


def _whole_number(environ: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = environ.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise LocalError(f"{name} must be a whole number from {least} to {most}.")
    return int(text)


def _seconds(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MAX_DRAIN_SECONDS:
        raise LocalError(f"{name} must be a number of seconds from 0 to {MAX_DRAIN_SECONDS}.")
    return value


def _without_proxy(hosts: str) -> str:
    """The hosts that need no proxy, ours among them: everything here speaks over loopback."""
    return ",".join(dict.fromkeys([*filter(None, hosts.split(",")), *LOOPBACK_HOSTS]))
