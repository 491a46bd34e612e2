"""Connections: what they promise when the database is away, busy or restarted, and what they never say."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from compaction import errors
from compaction.store import engine, sessions
from compaction.store.engine import Database
from tests.integration.store.stage import Stage

pytestmark = pytest.mark.anyio


@pytest.fixture
def store_url(database_url: str) -> str:
    """Some tests end connections of their database: each has one of its own."""
    return database_url


async def test_a_block_that_raises_changes_nothing(stage: Stage) -> None:
    async def work() -> None:
        async with stage.database.begin() as conn:
            await sessions.put(conn, stage.tenant_id, "s", model="m")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await work()
    async with stage.database.connect() as conn:
        assert await sessions.get(conn, stage.tenant_id, "s") is None


async def test_statements_on_connect_are_committed_one_by_one(stage: Stage) -> None:
    async def work() -> None:
        async with stage.database.connect() as conn:
            await sessions.put(conn, stage.tenant_id, "s", model="m")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await work()
    async with stage.database.connect() as conn:
        assert await sessions.get(conn, stage.tenant_id, "s") is not None


async def test_every_wait_in_the_database_has_a_limit(database: Database) -> None:
    async with database.connect() as conn:
        names = ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout", "TimeZone")
        shown = [(await conn.exec_driver_sql(f"SHOW {name}")).scalar() for name in names]
    assert shown == ["5s", "30s", "30s", "UTC"]


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "postgresql", "postgres"])
async def test_an_address_may_leave_the_driver_out(store_url: str, scheme: str) -> None:
    database = Database(store_url.replace("postgresql+psycopg", scheme))
    await database.ping()
    await database.close()


async def test_a_server_that_is_not_there_is_unavailable_and_the_url_is_not_told() -> None:
    away = Database("postgresql+psycopg://someone:secret@127.0.0.1:1/nothing")
    with pytest.raises(errors.Unavailable) as caught:
        await away.ping()
    assert "secret" not in str(caught.value)
    await away.close()


async def test_a_lock_that_is_held_too_long_is_unavailable(stage: Stage) -> None:
    session = await stage.session()

    async def work() -> None:
        async with stage.database.begin() as conn:
            await conn.exec_driver_sql("SET LOCAL lock_timeout = '50ms'")
            await sessions.put(conn, stage.tenant_id, session.name, model="m")

    async with stage.database.begin() as holder:
        await holder.exec_driver_sql("SELECT 1 FROM sessions WHERE id = %s FOR UPDATE", (session.id,))
        with pytest.raises(errors.Unavailable):
            await work()


async def test_more_callers_than_connections_wait_for_their_turn(store_url: str) -> None:
    small = Database(store_url, pool_size=2)

    async def work() -> int:
        async with small.begin() as conn:
            return int((await conn.exec_driver_sql("SELECT 1")).scalar_one())

    assert sum(await asyncio.gather(*(work() for _ in range(30)))) == 30
    await small.close()


async def test_a_pool_that_stays_empty_is_unavailable(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "POOL_WAIT_SECONDS", 0.05)
    small = Database(store_url, pool_size=1)
    async with small.begin():
        with pytest.raises(errors.Unavailable):
            await small.ping()
    await small.close()


async def test_connections_that_the_server_closed_while_idle_are_replaced_without_an_error(stage: Stage) -> None:
    async def use() -> None:
        async with stage.database.begin() as conn:
            await conn.exec_driver_sql("SELECT pg_sleep(0.02)")

    await asyncio.gather(*(use() for _ in range(10)))  # fills the pool
    await stage.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await asyncio.sleep(0.2)
    await asyncio.gather(*(use() for _ in range(20)))


async def test_a_connection_that_dies_in_a_transaction_is_unavailable_and_the_next_one_works(stage: Stage) -> None:
    async def work() -> None:
        async with stage.database.begin() as conn:
            pid = (await conn.exec_driver_sql("SELECT pg_backend_pid()")).scalar_one()
            await stage.query("SELECT pg_terminate_backend(%s)", pid)
            await conn.exec_driver_sql("SELECT 1")

    with pytest.raises(errors.Unavailable):
        await work()
    await stage.database.ping()


async def test_a_refused_statement_names_its_state_and_no_value(stage: Stage) -> None:
    async def work() -> None:
        async with stage.database.begin() as conn:
            unphased = text("INSERT INTO provider_pauses (provider, phase) VALUES ('p', :phase)")
            await conn.execute(unphased, {"phase": "private words"})

    with pytest.raises(errors.Internal) as caught:
        await work()
    assert "23514" in str(caught.value)
    assert "private words" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_what_belongs_to_something_that_was_just_removed_is_not_found(stage: Stage) -> None:
    async def work() -> None:
        async with stage.database.begin() as conn:
            orphan = text("INSERT INTO messages (session_id, seq, role, body_bytes, body) VALUES (0, 1, :role, 1, '')")
            await conn.execute(orphan, {"role": "private words"})

    with pytest.raises(errors.NotFound) as caught:
        await work()
    assert "private words" not in str(caught.value)


async def test_a_schema_that_is_too_old_is_told_in_plain_words(empty_database_url: str) -> None:
    empty = Database(empty_database_url)
    with pytest.raises(errors.Internal, match='relation "tenants" does not exist'):
        async with empty.begin() as conn:
            await conn.exec_driver_sql("SELECT * FROM tenants")
    await empty.close()


async def test_our_own_errors_pass_through_unchanged(stage: Stage) -> None:
    with pytest.raises(errors.Conflict):
        async with stage.database.begin():
            raise errors.Conflict


async def test_a_time_limit_of_the_caller_is_not_an_error_of_the_database(stage: Stage) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), stage.database.begin() as conn:
            await conn.exec_driver_sql("SELECT pg_sleep(5)")
    await stage.database.ping()


async def test_a_dedicated_connection_leaves_its_place_in_the_pool(store_url: str) -> None:
    small = Database(store_url, pool_size=1)
    async with small.dedicated() as own:
        await own.execute("SELECT 1")
        await small.ping()
    assert own.closed
    await small.close()
