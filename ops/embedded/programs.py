"""Postgres's programs together with the identity they run under."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ops.embedded import nobody
from ops.embedded.binaries import postgres_folder
from ops.embedded.identity import Identity, choose_identity


@dataclass(frozen=True, slots=True)
class Programs:
    """`folder` holds postgres and initdb, runnable under `identity`."""

    folder: Path
    identity: Identity

    @classmethod
    def find(cls) -> Self:
        """Those of this machine. Raises LocalError if there are none."""
        folder = postgres_folder()
        identity = choose_identity(folder / "postgres")
        return cls(nobody.reachable_programs(folder) if identity is Identity.NOBODY else folder, identity)

    def path(self, name: str) -> str:
        """One program."""
        return str(self.folder / name)
