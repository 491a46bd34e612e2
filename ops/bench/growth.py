"""By how much the database grows: for a stored session, and for each job on it. `make bench-growth`.

An empty database, 200 sessions of 400 KB, one job on each by a real worker with a fake provider; then the tables are
measured as Postgres counts them, with their indexes and what it stores apart (TOAST), and the write-ahead log beside.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import psycopg

from ops.bench.compactd_jobs import compactd
from ops.bench.rig import Rig
from ops.bench.trial import BYTES, MESSAGES, Scenario

JOBS = 200  # pages are 8 KB: far more rows than one page of each table holds
QUICK = Scenario(name="growth", jobs=JOBS, latency_seconds=0.0, deltas=20)
OF_SESSIONS = frozenset(
    {"sessions", "messages", "session_state", "breakers"}
)  # what stays; the rest goes with its jobs

_SIZES = """
    SELECT relname, pg_total_relation_size(oid) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> 'alembic_version'
"""
_WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes by table, and of the log written so far."""

    tables: dict[str, int]
    log_bytes: int

    @classmethod
    def of(cls, url: str) -> Sizes:
        """The database now."""
        with psycopg.connect(url, autocommit=True) as conn:
            tables = {name: int(size) for name, size in conn.execute(_SIZES)}
            row = conn.execute(_WAL).fetchone()
        return cls(tables, int(row[0]) if row else 0)

    def since(self, before: Sizes) -> Sizes:
        """What was added."""
        grown = {name: size - before.tables.get(name, 0) for name, size in self.tables.items()}
        return Sizes(grown, self.log_bytes - before.log_bytes)


def main() -> int:
    """Prints what a session and a job leave in each table."""
    with Rig() as rig:
        url = rig.postgres.url()
        before = Sizes.of(url)
        with compactd(rig) as contender:
            trial = contender.play(QUICK)
        grown = Sizes.of(url).since(before)
    if trial.ended != JOBS:
        print(f"Only {trial.ended} of {JOBS} jobs ended well; the figures would mean nothing.", file=sys.stderr)
        return 1
    session = sum(size for name, size in grown.tables.items() if name in OF_SESSIONS)
    job = sum(size for name, size in grown.tables.items() if name not in OF_SESSIONS)
    print(f"{JOBS} sessions of {MESSAGES} messages and {BYTES / 1000:.0f} KB, one job on each")
    for name, size in sorted(grown.tables.items(), key=lambda one: -one[1]):
        if size > 0:
            print(f"  {name:20} {size / JOBS / 1000:8.1f} KB {'a session' if name in OF_SESSIONS else 'a job'}")
    print(f"  {'stored session':20} {session / JOBS / 1000:8.1f} KB, {100 * session / JOBS / BYTES:.0f} % of what came")
    print(f"  {'job':20} {job / JOBS / 1000:8.1f} KB until retention takes it")
    print(f"  {'write-ahead log':20} {grown.log_bytes / JOBS / 1000:8.1f} KB a session and its job")
    return 0


if __name__ == "__main__":
    sys.exit(main())
