"""Looks for words in every column of every table, packed, compressed and sealed bodies included."""

from __future__ import annotations

import base64

import psycopg
from psycopg import sql

from compaction.errors import CompactdError
from compaction.store import bodies
from compaction.store.sealed_text import MARK

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"


def places(url: str, *words: str) -> set[str]:
    """`table.column` of every value in which one of the words stands."""
    found: set[str] = set()
    with psycopg.connect(url) as conn:
        for (table,) in conn.execute(TABLES).fetchall():
            rows = conn.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table)))
            names = [column.name for column in rows.description or ()]
            for row in rows:
                for name, value in zip(names, row, strict=True):
                    if any(word.encode() in text for word in words for text in texts(value)):
                        found.add(f"{table}.{name}")
    return found


def texts(value: object) -> list[bytes]:
    """A value as the bytes that may hold a word: as it lies there, and unpacked."""
    if value is None:
        return []
    if isinstance(value, str) and value.startswith(MARK):
        return [bodies.unpack(base64.b64decode(value.removeprefix(MARK)))]
    if not isinstance(value, bytes | memoryview):
        return [str(value).encode(errors="surrogatepass")]
    raw = bytes(value)
    try:
        return [raw, bodies.unpack_object(raw)]
    except CompactdError:
        return [raw]  # a hash, say
