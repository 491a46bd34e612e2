"""The leader's counting: a turn counts what is over, and a database that is away stops nobody from leading."""

from __future__ import annotations

import pytest

from compaction.store import tallies
from compaction.store.engine import Database
from compaction.store.reach import Reach
from worker.tallying import Tallying

pytestmark = pytest.mark.anyio


async def test_a_turn_counts_and_then_rests(database_url: str) -> None:
    database = Database(database_url, pool_size=1)
    try:
        counting = Tallying(database)
        await counting.turn()
        async with database.connect() as conn:
            assert (await tallies.lately(conn, Reach(), 24)).missing_from is None
            await conn.exec_driver_sql("DELETE FROM job_tallies")
        await counting.turn()  # not due yet
        async with database.connect() as conn:
            assert (await tallies.lately(conn, Reach(), 24)).missing_from is not None
    finally:
        await database.close()


async def test_a_database_that_is_away_is_no_reason_to_stop_leading() -> None:
    database = Database("postgresql+psycopg://nobody@127.0.0.1:1/none", pool_size=1)
    try:
        await Tallying(database).turn()
    finally:
        await database.close()
