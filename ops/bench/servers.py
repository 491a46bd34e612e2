"""The servers of a bench: a migrated Postgres and a Valkey of its own, and the environment for what speaks to them."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from ops.embedded import Postgres, Valkey
from ops.embedded.databases import alembic


class Servers:
    """`with Servers() as servers:` they run, in a folder that is gone at the end.

    Without `durable` Postgres does not wait for the disk.
    """

    postgres: Postgres
    valkey: Valkey
    folder: Path

    def __init__(self, *, durable: bool = True) -> None:
        self._durable = durable
        self.resources = ExitStack()  # what else is to end with the servers, last in first out

    def __enter__(self) -> Self:
        """Starts the servers, migrates the database, and goes on with `begin`."""
        try:
            self.folder = Path(self.resources.enter_context(tempfile.TemporaryDirectory(prefix="compactd-bench-")))
            self.postgres = Postgres(self.folder / "postgres", durable=self._durable)
            self.resources.callback(self.postgres.remove)
            self.postgres.start()
            self.valkey = self.resources.enter_context(Valkey(self.folder / "valkey"))
            alembic(self.database_url, self.folder / "alembic.log", "upgrade", "head")
            self.begin()
        except BaseException:
            self.resources.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops everything."""
        self.resources.close()

    def begin(self) -> None:
        """What a bench starts beside its servers: nothing by itself."""

    @property
    def database_url(self) -> str:
        """What COMPACTD_DATABASE_URL takes."""
        return self.postgres.sqlalchemy_url()

    @property
    def redis_url(self) -> str:
        """What COMPACTD_REDIS_URL takes."""
        return self.valkey.url()

    def environ(self) -> dict[str, str]:
        """For a process of ours: these servers, and nothing of the caller's own settings."""
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "COMPACTD_"))}
        return mine | {"COMPACTD_DATABASE_URL": self.database_url, "COMPACTD_REDIS_URL": self.redis_url}
