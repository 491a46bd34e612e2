"""The store's statements and columns as text, for whoever holds the next release's schema to them."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from sqlalchemy import SelectBase, UpdateBase
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from compaction.store.tables import metadata

# Parameters as PREPARE takes them.
_DIALECT = PGDialect_psycopg(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it so


def statements_in(module: ModuleType) -> Iterator[tuple[str, str]]:
    """The statements that stand as constants in a module, by name, in Postgres's own words."""
    for name, value in vars(module).items():
        if isinstance(value, SelectBase | UpdateBase):
            lines = str(value.compile(dialect=_DIALECT)).splitlines()
            yield name, "\n".join(line.strip() for line in lines if line.strip())


def columns() -> list[str]:
    """`table.column type`, with `not null` where nothing may be missing."""
    return [
        f"{table.name}.{column.name} {column.type.compile(_DIALECT).lower()}{'' if column.nullable else ' not null'}"
        for table in metadata.sorted_tables
        for column in table.columns
    ]
