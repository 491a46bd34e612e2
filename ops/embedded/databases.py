"""Databases of a running cluster: made from a template, migrated, dropped. For tests and checks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psycopg
from psycopg import sql

from ops.embedded.cluster import ROLE
from ops.embedded.postgres import Postgres
from ops.embedded.processes import Command, run_to_end

ROOT = Path(__file__).resolve().parents[2]
MIGRATE_SECONDS = 120.0  # one second as a rule


def create_database(postgres: Postgres, name: str, template: str = "template0") -> str:
    """Makes a database of the product's role and returns its SQLAlchemy URL. `template` must have no connections."""
    statement = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {}").format(
        sql.Identifier(name), sql.Identifier(ROLE), sql.Identifier(template)
    )
    _execute(postgres, statement)
    return postgres.sqlalchemy_url(name)


def drop_database(postgres: Postgres, name: str) -> None:
    """Drops a database and whoever is still connected to it."""
    _execute(postgres, sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def alembic(url: str, log: Path, *arguments: str) -> None:
    """Runs Alembic on a database in a process of its own. Raises LocalError with the end of its log if it fails."""
    run_to_end(alembic_command(url, log, *arguments), MIGRATE_SECONDS)


def alembic_command(url: str, log: Path, *arguments: str) -> Command:
    """The command that `alembic` runs."""
    return Command(
        name=f"alembic {' '.join(arguments)}",
        arguments=(sys.executable, "-m", "alembic", *arguments),
        folder=ROOT,
        log=log,
        environ={**os.environ, "COMPACTD_DATABASE_URL": url},
    )


def _execute(postgres: Postgres, statement: sql.Composed) -> None:
    with psycopg.connect(postgres.url("postgres", superuser=True), autocommit=True) as connection:
        connection.execute(statement)
