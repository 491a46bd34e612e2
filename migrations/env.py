"""Runs the migrations: one migrator at a time, and none that waits long for a lock that live traffic holds.

The database is the `url` attribute that `compaction.store.migrate` sets, else COMPACTD_DATABASE_URL.
"""

from __future__ import annotations

import os
import time

from alembic import context
from sqlalchemy import URL, Connection, create_engine, text
from sqlalchemy.pool import NullPool

from compaction.store.engine import driver_url
from compaction.store.leader import LOCK_SPACE, MIGRATION_LOCK
from compaction.store.schema import metadata

OTHERS_TIMEOUT_SECONDS = 120  # how long to wait for another migrator; several processes may start at once
ASK_SECONDS = 0.1  # between two questions whether the other one has ended
LOCK_TIMEOUT_SECONDS = 5  # a DDL statement that waits longer blocks everybody behind it: better to fail and try again


def _url() -> URL:
    url = context.config.attributes.get("url") or os.environ.get("COMPACTD_DATABASE_URL")
    if not url:
        raise SystemExit("Set COMPACTD_DATABASE_URL to the database to migrate.")
    return driver_url(url) if isinstance(url, str) else url


def _migrate(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        compare_type=True,
        compare_server_default=True,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


def _wait_for_others(connection: Connection) -> None:
    """Takes the advisory lock by asking again and again.

    Whoever waits within a statement is waited for by an index that is built concurrently, and the two never end.
    """
    give_up_at = time.monotonic() + OTHERS_TIMEOUT_SECONDS
    while not connection.scalar(text(f"SELECT pg_try_advisory_lock({LOCK_SPACE}, {MIGRATION_LOCK})")):
        connection.commit()
        if time.monotonic() > give_up_at:
            raise SystemExit(
                f"Another migrator is at work for {OTHERS_TIMEOUT_SECONDS} s. Try again when it has ended."
            )
        time.sleep(ASK_SECONDS)


def run_online() -> None:
    """Migrates under an advisory lock that falls with the connection."""
    engine = create_engine(_url(), poolclass=NullPool, hide_parameters=True)
    with engine.connect() as connection:
        _wait_for_others(connection)
        timeout_seconds = context.config.attributes.get("lock_timeout_seconds", LOCK_TIMEOUT_SECONDS)
        connection.execute(text(f"SET lock_timeout = '{int(timeout_seconds * 1000)}ms'"))
        connection.commit()
        _migrate(connection)


def run_offline() -> None:
    """Prints the SQL instead, for those who run it by hand (`alembic upgrade head --sql`)."""
    context.configure(
        dialect_name="postgresql", target_metadata=metadata, literal_binds=True, transaction_per_migration=True
    )
    with context.begin_transaction():
        context.run_migrations()


if context.is_offline_mode():
    run_offline()
else:
    run_online()
