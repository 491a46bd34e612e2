"""The store on a real database; tests of one file share it, each with a tenant of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from compaction.store.engine import Database
from tests.integration.store.stage import Stage, staged

POOL_SIZE = 20  # enough for fifty tasks to be truly at once in the database, below the cluster's limit


@pytest.fixture
def store_url(module_database_url: str) -> str:
    """The database of the test; a file whose tests must not see each other's rows overrides it."""
    return module_database_url


@pytest.fixture
async def database(store_url: str) -> AsyncIterator[Database]:
    opened = Database(store_url, pool_size=POOL_SIZE)
    yield opened
    await opened.close()


@pytest.fixture
async def stage(database: Database) -> Stage:
    return await staged(database)
