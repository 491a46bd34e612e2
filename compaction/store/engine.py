"""Connections to Postgres: a pool per event loop, binary on the wire, with limits on every wait.

Errors of the driver do not leave this room: a database that is away or too busy is errors.Unavailable (try again),
anything else errors.Internal with the SQLSTATE alone, because the driver's texts quote rows.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.rows import AsyncRowFactory
from psycopg.types.array import ListBinaryDumper
from sqlalchemy import URL, event, exc, make_url
from sqlalchemy.connectors.asyncio import AsyncAdapt_dbapi_connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry

from compaction import errors
from compaction.core import jsonbytes

LOCK_TIMEOUT_SECONDS = 5.0  # no transaction of ours holds a lock for long: a longer wait means trouble elsewhere
STATEMENT_TIMEOUT_SECONDS = 30.0  # the largest statement, a batch of 64 MiB, takes a few seconds on a slow disk
IDLE_TIMEOUT_SECONDS = 30.0  # a transaction left open by a stuck process must not hold rows until someone looks
ANSWER_SECONDS = 35.0  # a living server has ended the statement by then; behind a broken wire we would wait for ever
CONNECT_TIMEOUT_SECONDS = 10  # a server that does not answer by then is away
POOL_WAIT_SECONDS = 10.0  # connections are held for milliseconds: a longer queue is an outage
RECYCLE_SECONDS = 1800  # half an hour: lets a fail-over or a changed DNS entry be noticed without a restart
PREPARE_AFTER = 2  # executions until a connection prepares a statement: ours are few and always the same
_PARENT_GONE = "23503"  # a foreign key: a session was erased, say, between our look and our write
RV = TypeVar("RV")
Connection = AsyncConnection  # for annotations outside this room, which alone knows SQLAlchemy
# SQLSTATEs that pass by themselves: connection trouble, deadlock, too many connections, timeouts, a server going down.
# fmt: off
_PASSING = frozenset({
    "08000", "08001", "08003", "08004", "08006", "25P03", "25P04", "40001", "40P01", "53300", "53400", "55P03", "57014",
    "57P01", "57P02", "57P03", "57P05",
})
# fmt: on


class _BinaryCursor(psycopg.AsyncCursor[Any]):
    """Rows in Postgres's binary format: bytea as it is, numbers and times without parsing."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], *, row_factory: AsyncRowFactory[Any]) -> None:
        super().__init__(connection, row_factory=row_factory)
        self.format = psycopg.pq.Format.BINARY


class _Connection(psycopg.AsyncConnection[Any]):
    """Gives up a server that says nothing: its peer may be gone without a word, and only a clock can tell."""

    answer_seconds = ANSWER_SECONDS

    async def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:  # noqa: ASYNC109 - psycopg's
        """Waits for an answer; with `timeout` (of a LISTEN) the caller takes care itself."""
        if timeout is not None:
            return await super().wait(gen, interval, timeout)
        try:
            async with asyncio.timeout(self.answer_seconds):
                return await super().wait(gen, interval)
        except TimeoutError:
            self.pgconn.finish()
            raise psycopg.OperationalError("the server does not answer") from None


class Database:
    """A pool of connections for one event loop; `url` is postgresql+psycopg://user:password@host:port/name.

    No statement waits longer than `answer_seconds` for the server, and a few seconds more for its cancellation.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        application_name: str = "compactd",
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._engine = _engine(url, pool_size, application_name, answer_seconds)
        self.pool_size = pool_size
        self._single = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end of the block, rolled back when it raises.

        Raises errors.Unavailable when the database is away, too busy or out of connections.
        """
        try:
            async with self._engine.begin() as connection:
                yield connection
        except (exc.DBAPIError, exc.TimeoutError, psycopg.Error) as error:
            raise translated(error) from None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[AsyncConnection]:
        """A connection where every statement is its own transaction: one round trip instead of three."""
        try:
            async with self._single.connect() as connection:
                yield connection
        except (exc.DBAPIError, exc.TimeoutError, psycopg.Error) as error:
            raise translated(error) from None

    @asynccontextmanager
    async def dedicated(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """The driver's own connection in autocommit, outside the pool, closed at the end: for LISTEN."""
        async with self.connect() as connection:
            pooled = await connection.get_raw_connection()
            driver = pooled.driver_connection
            await connection.run_sync(lambda sync: sync.detach())
            if not isinstance(driver, psycopg.AsyncConnection):
                raise errors.Internal("The driver is not psycopg.")
            try:
                yield driver
            finally:
                await connection.invalidate()  # else SQLAlchemy rolls back what is closed, and logs that it cannot
                await driver.close()

    def in_use(self) -> int:
        """How many connections of the pool somebody has now."""
        pool = self._engine.pool
        return pool.checkedout() if isinstance(pool, AsyncAdaptedQueuePool) else 0

    async def ping(self) -> None:
        """Asks the database for a sign of life. Raises errors.Unavailable."""
        async with self.connect() as connection:
            await connection.exec_driver_sql("SELECT 1")

    async def close(self) -> None:
        """Closes the pool; connections in use are closed when they come back."""
        await self._engine.dispose()


def translated(error: Exception) -> errors.CompactdError:
    """The error of ours for one of the driver's. Its text names no value: the driver's own texts quote rows."""
    cause = getattr(error, "orig", None) or error
    state = getattr(cause, "sqlstate", None)
    away = isinstance(error, exc.TimeoutError) or isinstance(cause, psycopg.InterfaceError)
    lost = state is None and isinstance(cause, psycopg.OperationalError)
    if away or lost or state in _PASSING:
        return errors.Unavailable("The database is away or too busy. Try again in a moment.")
    if state == _PARENT_GONE:
        return errors.NotFound("What this belongs to was removed at this moment.")
    # Class 42 is about the statement's own words (a missing column, say); other texts may quote values.
    said = f": {cause.diag.message_primary}" if isinstance(cause, psycopg.Error) and str(state)[:2] == "42" else ""
    return errors.Internal(f"The database refused a statement (SQLSTATE {state}, {type(cause).__name__}){said}.")


def driver_url(url: str) -> URL:
    """The address with our driver in it: people write postgresql:// or postgres:// too."""
    address = make_url(url)
    return address.set(drivername="postgresql+psycopg") if address.drivername in {"postgresql", "postgres"} else address


def _engine(url: str, pool_size: int, application_name: str, answer_seconds: float) -> AsyncEngine:
    limits: dict[str, float] = {
        "lock_timeout": LOCK_TIMEOUT_SECONDS,
        "statement_timeout": STATEMENT_TIMEOUT_SECONDS,
        "idle_in_transaction_session_timeout": IDLE_TIMEOUT_SECONDS,
    }
    engine = create_async_engine(
        driver_url(url),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=POOL_WAIT_SECONDS,
        pool_recycle=RECYCLE_SECONDS,
        pool_use_lifo=True,  # the same few connections stay warm, with their prepared statements
        hide_parameters=True,
        use_native_hstore=False,
        json_deserializer=jsonbytes.decode,
        connect_args={
            "async_creator_fn": _connecting(answer_seconds),
            "application_name": application_name,
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "cursor_factory": _BinaryCursor,
            "prepare_threshold": PREPARE_AFTER,
            "options": "-c timezone=UTC "
            + " ".join(f"-c {name}={int(seconds * 1000)}" for name, seconds in limits.items()),
        },
    )
    event.listen(engine.sync_engine, "connect", _on_connect)
    event.listen(engine.sync_engine, "checkout", _on_checkout)
    return engine


def _connecting(answer_seconds: float) -> Callable[..., Awaitable[_Connection]]:
    async def connect(*given: Any, **named: Any) -> _Connection:  # noqa: ANN401 - psycopg's own arguments
        connection = await _Connection.connect(*given, **named)
        connection.answer_seconds = answer_seconds
        return connection

    return connect


def _on_connect(dbapi_connection: AsyncAdapt_dbapi_connection, record: ConnectionPoolEntry) -> None:
    del record
    dbapi_connection.driver_connection.adapters.register_dumper(list, ListBinaryDumper)


def _on_checkout(dbapi_connection: AsyncAdapt_dbapi_connection, record: ConnectionPoolEntry, proxy: object) -> None:
    """Drops a connection that the server has closed: an idle one has nothing to read unless it was told goodbye."""
    del record, proxy
    descriptor = dbapi_connection.driver_connection.fileno()
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    if poller.poll(0):
        raise exc.DisconnectionError("the server closed this connection")
