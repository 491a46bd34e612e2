"""Fixtures for every test. Servers are real, start only when a test asks, once per test process, and end with it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from compaction.store import migrate
from ops.embedded import Postgres, Valkey
from ops.embedded.databases import create_database, drop_database

# `make chaos` plays more. In one long round of seven, on a loaded machine, a job lost three workers of which not all
# were killed on purpose; until that is understood the dice are no test for everybody.
collect_ignore = ["chaos/test_chaos.py"]
TEMPLATE = "template_compactd"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, as the product does."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """A running cluster of this test process; its data may be lost."""
    server = Postgres(tmp_path_factory.mktemp("postgres"), durable=False)
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture(scope="session")
def postgres_url(postgres: Postgres) -> str:
    """The SQLAlchemy URL of an empty database that all tests of this process share."""
    return postgres.sqlalchemy_url()


@pytest.fixture(scope="session")
def migrated_template(postgres: Postgres) -> str:
    """The name of a database at the newest migration; copied for each test that wants one, never used itself."""
    url = create_database(postgres, TEMPLATE)
    migrate.upgrade(url)
    return TEMPLATE


def _copied(postgres: Postgres, template: str) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    url = create_database(postgres, name, template)
    yield url
    drop_database(postgres, name)


@pytest.fixture
def empty_database_url(postgres: Postgres) -> Iterator[str]:
    """The SQLAlchemy URL of a database without tables, for this test alone."""
    yield from _copied(postgres, "template0")


@pytest.fixture
def database_url(postgres: Postgres, migrated_template: str) -> Iterator[str]:
    """The SQLAlchemy URL of a migrated database, for this test alone."""
    yield from _copied(postgres, migrated_template)


@pytest.fixture(scope="module")
def module_database_url(postgres: Postgres, migrated_template: str) -> Iterator[str]:
    """The SQLAlchemy URL of a migrated database that the tests of one module share."""
    yield from _copied(postgres, migrated_template)


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    """A running Valkey of this test process."""
    with Valkey(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture
def redis_url(valkey: Valkey) -> str:
    """The URL of an empty Valkey."""
    with redis.Redis.from_url(valkey.url()) as client:
        client.flushall()
    return valkey.url()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder of the project."""
    return Path(__file__).resolve().parent.parent
