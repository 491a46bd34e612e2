"""Watches what the API asks of the database, and whose rows each statement names.

A statement over a tenant's table is walled when it names the caller's tenant, or a row that is the caller's. Row ids of
different tables are moved far apart first, so that a number in a statement can only mean one thing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BindParameter, Table, event, text
from sqlalchemy.sql import visitors

from compaction.store.engine import Database
from compaction.store.schema import metadata

SHARED = {"workers", "provider_pauses", "queue_depths"}  # nobody's in particular: no word of a tenant stands in them
COUNTED = "queue_depths"  # a count of the whole queue reads all jobs and tells a number
BY_KEY = "b_public_id"  # who calls is found out by the key itself: no tenant is known before
TENANTS = {"tenants"}  # found by name, when a key is made
# A row's owner by the column that says so, for tables that say it through another one.
SESSIONS_OF = "session_id IN (SELECT id FROM sessions WHERE tenant_id = :tenant_id)"
JOBS_OF = "job_id IN (SELECT id FROM jobs WHERE tenant_id = :tenant_id)"
FAR_APART = {"tenants": 1_000_000, "sessions": 2_000_000, "api_keys": 3_000_000}


def owned_by(table: Table) -> str:
    """The condition that finds a tenant's rows of a table. A table that is nobody's fails by its name."""
    if table.name == "tenants":
        return "id = :tenant_id"
    for column, condition in (
        ("tenant_id", "tenant_id = :tenant_id"),
        ("session_id", SESSIONS_OF),
        ("job_id", JOBS_OF),
    ):
        if column in table.c:
            return condition
    raise AssertionError(f"{table.name} does not say whose its rows are; nothing walls it off")


def walled_tables() -> list[Table]:
    """The tables with rows of tenants."""
    return [table for table in metadata.sorted_tables if table.name not in SHARED]


async def move_apart(database: Database) -> None:
    """Lets the ids of different tables begin far from each other."""
    async with database.begin() as conn:
        for name, first in FAR_APART.items():
            await conn.execute(text(f"ALTER TABLE {name} ALTER COLUMN id RESTART WITH {first}"))


async def tenant_id_of(database: Database, name: str) -> int:
    async with database.connect() as conn:
        found: int = (
            await conn.execute(text("SELECT id FROM tenants WHERE name = :name"), {"name": name})
        ).scalar_one()
    return found


async def state_of(database: Database, tenant_id: int) -> dict[str, list[str]]:
    """All rows of a tenant, as text, by table."""
    state = {}
    async with database.connect() as conn:
        for table in walled_tables():
            query = text(f"SELECT t::text FROM {table.name} t WHERE {owned_by(table)} ORDER BY 1")  # noqa: S608 - our own
            state[table.name] = list((await conn.execute(query, {"tenant_id": tenant_id})).scalars())
    return state


async def ids_of(database: Database, tenant_id: int) -> set[object]:
    """Everything that names a row of the tenant's: the tenant itself, and its rows' ids."""
    names: set[object] = {tenant_id}
    async with database.connect() as conn:
        for table in walled_tables():
            if "id" in table.c:
                query = text(f"SELECT id FROM {table.name} WHERE {owned_by(table)}")  # noqa: S608 - our own
                found = (await conn.execute(query, {"tenant_id": tenant_id})).scalars()
                names.update(str(one) if not isinstance(one, int) else one for one in found)
    return names


@dataclass
class Statement:
    """One that ran, the tenants' tables that it touches, and the values that it names."""

    text: str
    tables: frozenset[str]
    values: dict[str, Any]

    @property
    def needs_a_wall(self) -> bool:
        """Whether it touches rows of tenants in a way that must name one."""
        own = self.tables - SHARED - TENANTS
        return bool(own) and COUNTED not in self.tables and not (own == {"api_keys"} and BY_KEY in self.values)

    def named(self) -> set[object]:
        """The values that may name a row, those in lists too."""
        found: set[object] = set()
        for value in self.values.values():
            items = value if isinstance(value, list | tuple) else (value,)
            found |= {item for item in items if isinstance(item, int | str) and not isinstance(item, bool)}
        return found


@dataclass
class Overseer:
    """Writes down the statements of one call at a time."""

    database: Database
    seen: list[Statement] = field(default_factory=list)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watches until the end of the block."""
        engine = self.database._engine.sync_engine
        event.listen(engine, "before_execute", self._note)
        try:
            yield
        finally:
            event.remove(engine, "before_execute", self._note)

    def take(self) -> list[Statement]:
        """What was seen since the last time."""
        seen, self.seen = self.seen, []
        return seen

    def _note(self, _conn: object, clause: Any, many: Any, one: Any, _options: object) -> None:  # noqa: ANN401 - SQLAlchemy's own event
        if not hasattr(clause, "get_children"):
            return
        tables = frozenset(item.name for item in visitors.iterate(clause) if isinstance(item, Table))
        bound = {item.key: item.value for item in visitors.iterate(clause) if isinstance(item, BindParameter)}
        for values in [one, *many]:
            used = {name: value for name, value in dict(values or {}).items() if name in bound}
            self.seen.append(Statement(str(clause)[:300], tables, bound | used))
