"""An upgrade without downtime: the newer release migrates while this one, and the one before, go on.

What earlier releases ask of the database is recorded (`ops.release_statements`). The schema may grow under them, and
only grow: what they ask for must be there, must take what they write, and must never be missing for a moment.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from alembic.script import ScriptDirectory

from compaction import __version__
from compaction.store import migrate
from compaction.store.recording import columns
from ops.embedded import Valkey
from ops.release_statements import path_of, statements
from tests.integration.service import Service, history

RELEASES = sorted(Path(__file__).parent.glob("release_*.sql"))
REVISIONS = [script.revision for script in ScriptDirectory(str(migrate.MIGRATIONS)).walk_revisions()][::-1]
LOCK_SECONDS = 5  # how long a statement of the product waits for a lock (store/engine.py)


def plain(url: str) -> str:
    """The address as psycopg writes it."""
    return url.replace("+psycopg", "")


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a release asks."""

    revision: str
    columns: list[tuple[str, str, str, bool]]  # table, column, type, not null
    statements: dict[str, str]

    @classmethod
    def of(cls, path: Path) -> Recorded:
        """Reads a recording."""
        text = path.read_text(encoding="utf-8")
        (revision,) = re.findall(r"^-- revision: (\w+)$", text, re.MULTILINE)
        told = re.findall(r"^-- column: (\w+)\.(\w+) (.+?)( not null)?$", text, re.MULTILINE)
        asked = re.findall(r"^-- statement: (\S+)\n(.+?);$(?=\n\n|\n\Z)", text, re.MULTILINE | re.DOTALL)
        return cls(revision, [(*one[:3], bool(one[3])) for one in told], dict(asked))


def refused(url: str, asked: dict[str, str]) -> dict[str, str]:
    """The statements that the schema does not understand any more, and why."""
    problems = {}
    with psycopg.connect(plain(url), autocommit=True) as conn:
        for name, text in asked.items():
            try:
                conn.execute(f"PREPARE asked AS {text}")
                conn.execute("DEALLOCATE asked")
            except psycopg.Error as error:
                problems[name] = str(error)
    return problems


@pytest.mark.parametrize("path", RELEASES, ids=lambda path: path.stem)
def test_the_newest_schema_understands_every_statement_of_an_earlier_release(path: Path, database_url: str) -> None:
    recorded = Recorded.of(path)
    assert len(recorded.statements) > 100
    assert recorded.revision in REVISIONS

    assert refused(database_url, recorded.statements) == {}


def test_a_column_that_is_taken_away_or_renamed_would_be_seen(database_url: str) -> None:
    with psycopg.connect(plain(database_url)) as conn:
        conn.execute("ALTER TABLE jobs RENAME COLUMN snoozes TO naps")
    problems = refused(database_url, Recorded.of(RELEASES[-1]).statements)

    assert problems
    assert all("snoozes" in problem for problem in problems.values())


def found_columns(url: str) -> dict[tuple[str, str], tuple[str, bool, bool]]:
    """Type, whether nothing may be missing, whether it fills itself, by table and column."""
    query = (
        "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, "
        "a.atthasdef OR a.attidentity <> '' FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
        "WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped"
    )
    with psycopg.connect(plain(url)) as conn:
        return {(table, name): (kind, full, filled) for table, name, kind, full, filled in conn.execute(query)}


@pytest.mark.parametrize("path", RELEASES, ids=lambda path: path.stem)
def test_the_newest_schema_takes_every_row_of_an_earlier_release(
    path: Path, database_url: str, empty_database_url: str
) -> None:
    """Old columns are there, with their types, and ask for no more; new columns of old tables fill themselves."""
    recorded = Recorded.of(path)
    migrate.upgrade(empty_database_url, recorded.revision)
    before, now = found_columns(empty_database_url), found_columns(database_url)
    assert {(table, name) for table, name, _, _ in recorded.columns} <= set(before)
    old_tables = {table for table, _, _, _ in recorded.columns}

    for place, (kind, required, filled) in before.items():
        if place[0] in old_tables:
            assert now.get(place, ("gone", False, False))[0] == kind, place
            assert required or not now[place][1] or now[place][2], f"{place} must not be missing any more"
            assert not filled or now[place][2], f"{place} does not fill itself any more"
    for place, (_, required, filled) in now.items():
        if place[0] in old_tables and place not in before:
            assert not required or filled, f"{place} is new, and an earlier release does not write it"


def test_what_this_release_asks_is_recorded_under_its_number() -> None:
    """Between releases the recording may be older than the code; it must exist, and be of a revision that is known."""
    assert path_of(__version__) in RELEASES
    assert Recorded.of(path_of(__version__)).revision in REVISIONS
    assert len(list(statements())) > 100
    assert len(columns()) > 100


@dataclass
class Writer:
    """A process of the first release: it writes and reads without a pause, with the waits that the product allows."""

    url: str
    jobs: int = 0
    problems: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Session, messages, a job, its end; until it is told to stop."""
        with psycopg.connect(self.url, autocommit=True, options=f"-c lock_timeout={LOCK_SECONDS * 1000}") as conn:
            tenant = one(conn, "INSERT INTO tenants (name) VALUES (%s) RETURNING id", uuid4().hex)
            while not self._stop.is_set():
                try:
                    self._job(conn, tenant)
                except psycopg.Error as error:
                    self.problems.append(f"{type(error).__name__}: {error}")

    def stop(self) -> None:
        """Lets it end."""
        self._stop.set()

    def _job(self, conn: psycopg.Connection, tenant: object) -> None:
        session = one(
            conn, "INSERT INTO sessions (tenant_id, name, model) VALUES (%s, %s, 'm') RETURNING id", tenant, uuid4().hex
        )
        said = "INSERT INTO messages (session_id, seq, role, body_bytes, body) VALUES (%s, 1, 'user', 2, 'x')"
        conn.execute(said, (session,))
        job = one(
            conn,
            "INSERT INTO jobs (tenant_id, session_id, trigger, priority, max_attempts) VALUES (%s, %s, 'auto', 20, 5) "
            "RETURNING id",
            tenant,
            session,
        )
        ended = "UPDATE jobs SET status = 'succeeded', ended_at = now() WHERE id = %s RETURNING id"
        assert one(conn, ended, job) == job
        self.jobs += 1


def one(conn: psycopg.Connection, query: str, *values: object) -> object:
    """The one value that the statement returns."""
    row = conn.execute(query, values).fetchone()
    assert row is not None
    return row[0]


def test_every_migration_goes_by_while_the_first_release_writes(empty_database_url: str) -> None:
    migrate.upgrade(empty_database_url, REVISIONS[0])
    writers = [Writer(plain(empty_database_url)) for _ in range(2)]
    threads = [threading.Thread(target=writer.run) for writer in writers]
    for thread in threads:
        thread.start()
    try:
        for revision in REVISIONS[1:]:
            migrate.upgrade(empty_database_url, revision)
            wait_for_jobs(writers)
    finally:
        for writer in writers:
            writer.stop()
        for thread in threads:
            thread.join()

    assert [writer.problems for writer in writers] == [[], []]
    with psycopg.connect(plain(empty_database_url)) as conn:
        assert one(conn, "SELECT count(*) FROM jobs WHERE status = 'succeeded'") == sum(one.jobs for one in writers)
    assert migrate.current(empty_database_url) == REVISIONS[-1]


def wait_for_jobs(writers: list[Writer]) -> None:
    """Until each has brought some more jobs to their end, or has met a problem."""
    marks = [writer.jobs + 5 for writer in writers]
    tick = threading.Event()
    for _ in range(3_000):  # half a minute
        if all(writer.jobs >= mark or writer.problems for writer, mark in zip(writers, marks, strict=True)):
            return
        tick.wait(0.01)


NEXT_RELEASE = (  # what an expanding migration does
    "ALTER TABLE jobs ADD COLUMN from_the_next_release text",
    "ALTER TABLE messages ADD COLUMN from_the_next_release integer NOT NULL DEFAULT 7",
    "CREATE TABLE from_the_next_release (job_id uuid REFERENCES jobs (id) ON DELETE CASCADE)",
    "CREATE INDEX ix_next ON jobs (from_the_next_release)",
    "UPDATE alembic_version SET version_num = '9999'",
)


def test_this_release_goes_on_when_the_next_one_has_migrated(tmp_path: Path, database_url: str, valkey: Valkey) -> None:
    """Jobs that run meanwhile end, new ones are taken, and the API stays ready; a worker may even be started."""
    with Service(tmp_path, database_url, valkey.url()) as service:
        service.play([{"delay_s": 3, "good_summary": {}}])
        service.put_session("during", history(20))
        running = service.enqueue("during")
        service.until(lambda: service.job(running["id"])["status"] == "running", "the job did not start")
        with psycopg.connect(plain(database_url), autocommit=True) as conn:
            for statement in NEXT_RELEASE:
                conn.execute(statement)
        assert service.wait(running["id"])["status"] == "succeeded"
        service.play()
        ready: Callable[[], int] = lambda: service.http.get("/readyz").status_code  # noqa: E731 - asked twice
        assert ready() == 200
        service.start_worker()
        service.put_session("after", history(20))
        assert service.compact("after")["status"] == "succeeded"
        assert service.http.delete("/v1/sessions/after").status_code == 200
        assert ready() == 200
