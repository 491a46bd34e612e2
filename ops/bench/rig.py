"""What every bench of jobs stands on: real Postgres with fsync, real Valkey, the fake provider, each a process."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from ops.bench.provider import Provider
from ops.embedded import Postgres, Valkey
from ops.embedded.databases import alembic
from ops.embedded.ports import LOOPBACK
from ops.stack.settings import ROOT

__all__ = ["ROOT", "Rig"]


class Rig:
    """`with Rig() as rig:` everything runs, in a folder of its own that is gone at the end."""

    postgres: Postgres
    valkey: Valkey
    provider: Provider
    folder: Path

    def __init__(self) -> None:
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        """Starts the servers and migrates the database."""
        enter = self._resources.enter_context
        try:
            self.folder = Path(enter(tempfile.TemporaryDirectory(prefix="compactd-bench-")))
            self.postgres = Postgres(self.folder / "postgres")
            self._resources.callback(self.postgres.remove)
            self.postgres.start()
            self.valkey = enter(Valkey(self.folder / "valkey"))
            alembic(self.database_url, self.folder / "alembic.log", "upgrade", "head")
            self.provider = enter(Provider(self.folder))
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops everything."""
        self._resources.close()

    @property
    def database_url(self) -> str:
        """What COMPACTD_DATABASE_URL takes."""
        return self.postgres.sqlalchemy_url()

    @property
    def redis_url(self) -> str:
        """What COMPACTD_REDIS_URL takes."""
        return self.valkey.url()

    def environ(self) -> dict[str, str]:
        """For a worker: our servers, and nothing of the caller's own settings."""
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "COMPACTD_"))}
        return mine | {
            "COMPACTD_DATABASE_URL": self.database_url,
            "COMPACTD_REDIS_URL": self.redis_url,
            "ANTHROPIC_BASE_URL": self.provider.url,
            "ANTHROPIC_API_KEY": "a-key-of-the-bench",
            "NO_PROXY": LOOPBACK,
            "no_proxy": LOOPBACK,
        }
