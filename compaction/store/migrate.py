"""Migrations from code: `upgrade(url)` brings a database to the newest schema, however old or new it is."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.pool import NullPool

from compaction.store.engine import CONNECT_TIMEOUT_SECONDS, driver_url
from compaction.store.schema import metadata

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"


def upgrade(url: str, revision: str = "head") -> None:
    """Brings the database at `url` (postgresql+psycopg://…) up to `revision`. Waits while another one migrates."""
    command.upgrade(_config(url), revision)


def downgrade(url: str, revision: str) -> None:
    """Takes the database back to `revision`; "base" is empty."""
    command.downgrade(_config(url), revision)


def current(url: str) -> str | None:
    """The revision that the database at `url` has; None when it is empty."""
    engine = _engine(url)
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


async def applied(conn: AsyncConnection) -> str | None:
    """The same over a connection of the pool."""
    return await conn.run_sync(lambda sync: MigrationContext.configure(sync).get_current_revision())


def heads() -> tuple[str, ...]:
    """The newest revisions in the code; more than one is a mistake."""
    return tuple(ScriptDirectory(str(MIGRATIONS)).get_heads())


def revisions() -> frozenset[str]:
    """All revisions in the code; another one in a database was written by a newer release."""
    return frozenset(script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions())


def differences(url: str) -> list[str]:
    """How the database at `url` differs from `store.tables`, in Alembic's words; empty when there is no drift."""
    engine = _engine(url)
    with engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        return [str(difference) for difference in compare_metadata(context, metadata)]


def _engine(url: str) -> Engine:
    return create_engine(
        driver_url(url),
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS},
    )


def _config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["url"] = driver_url(url)
    return config
