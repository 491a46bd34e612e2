"""Writes what was stored before with the key that writes now: then an old one can be taken out of COMPACTD_BODY_KEYS.

`python -m compaction.store.resealing` does it for the database and the keys of the environment, while the service runs.
It finds the columns by their kind: every `bytea` that is no hash, and every sealed text.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Column, LargeBinary, Table, Text, bindparam, select, tuple_, type_coerce, update

from compaction import telemetry
from compaction.errors import CompactdError
from compaction.settings import SettingsError, settings_from
from compaction.store import bodies, sealed_text
from compaction.store.engine import Connection, Database
from compaction.store.schema import metadata
from compaction.store.sealed_text import SealedText

BATCH = 200  # rows in one transaction: a few megabytes, and no row is locked for long
HASHES = frozenset({"secret_hash", "request_hash"})  # there is nothing in them to read

_log = telemetry.logger("resealing")


async def reseal(database: Database) -> dict[str, int]:
    """Rewrites every body that the first key has not written; how many there were, by table and column.

    Raises errors.Internal for one that no key opens; what was done until then stays done. Safe to run again, and
    beside a running service: a row that changes meanwhile is left to whoever changes it.
    """
    return {f"{table.name}.{column.name}": await _column(database, table, column) for table, column in sealed_columns()}


def sealed_columns() -> Iterator[tuple[Table, Column[Any]]]:
    """The columns that hold bodies."""
    for table in metadata.sorted_tables:
        for column in table.c:
            binary = isinstance(column.type, LargeBinary) and column.name not in HASHES
            if binary or isinstance(column.type, SealedText):
                yield table, column


async def _column(database: Database, table: Table, column: Column[Any]) -> int:
    after: tuple[Any, ...] | None = None
    changed = 0
    while True:
        async with database.begin() as conn:
            rows = await _page(conn, table, column, after)
            changed += await _rewritten(conn, table, column, rows)
        if len(rows) < BATCH:
            return changed
        after = tuple(rows[-1][:-1])


async def _page(conn: Connection, table: Table, column: Column[Any], after: tuple[Any, ...] | None) -> list[Any]:
    """The next rows by their primary key: the key's parts, then the column as it is stored."""
    key = list(table.primary_key.columns)
    statement = select(*key, type_coerce(column, _stored_type(column)))
    statement = statement.where(column.is_not(None)).order_by(*key).limit(BATCH)
    if after is not None:
        statement = statement.where(tuple_(*key) > tuple_(*after))
    return list((await conn.execute(statement)).all())


async def _rewritten(conn: Connection, table: Table, column: Column[Any], rows: list[Any]) -> int:
    stored = _stored_type(column)
    key = list(table.primary_key.columns)
    place = [part == bindparam(f"b_key_{number}", type_=part.type) for number, part in enumerate(key)]
    same = type_coerce(column, stored) == bindparam("b_before", type_=stored)
    statement = update(table).where(*place, same).values({column: bindparam("b_after", type_=stored)})
    changed = 0
    for *parts, before in rows:
        after = _again(before)
        if after is not None:
            values = {f"b_key_{number}": part for number, part in enumerate(parts)}
            changed += (await conn.execute(statement, values | {"b_before": before, "b_after": after})).rowcount
    return changed


def _stored_type(column: Column[Any]) -> LargeBinary | Text:
    """What lies in the column, without the sealing that the table's own type does."""
    return Text() if isinstance(column.type, SealedText) else LargeBinary()


def _again(before: bytes | str) -> bytes | str | None:
    """The value under the key that writes now; None when it is already."""
    if isinstance(before, str):
        return sealed_text.again(before)
    return None if bodies.is_current(before) else bodies.pack(bodies.unpack_object(before))


async def _main() -> int:
    settings = settings_from(os.environ)
    telemetry.configure(settings.log_level, service="resealing")
    if not settings.body_keys:
        raise SettingsError("COMPACTD_BODY_KEYS is not set, so there is no key to write with.")
    bodies.use_keys(settings.body_keys)
    database = Database(settings.database_url, pool_size=1)
    try:
        _log.info("resealed", **await reseal(database))
    finally:
        await database.close()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(_main()))
    except CompactdError as problem:
        sys.exit(problem.message)
