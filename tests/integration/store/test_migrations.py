"""Migrations: forward and back, one head, no drift, names by the convention, and no harm to data or live traffic."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.pool import NullPool

from compaction.store import migrate
from compaction.store.schema import metadata

REVISIONS = [script.revision for script in ScriptDirectory(str(migrate.MIGRATIONS)).walk_revisions()][::-1]

# Everything that makes a schema, as Postgres itself writes it down.
CATALOG = {
    "columns": "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, "
    "a.attstorage, pg_get_expr(d.adbin, d.adrelid) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
    "LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum "
    "WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped",
    "order of columns": "SELECT attrelid::regclass::text, array_agg(attname ORDER BY attnum) FROM pg_attribute "
    "JOIN pg_class c ON c.oid = attrelid WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace "
    "AND attnum > 0 AND NOT attisdropped GROUP BY 1",
    "constraints": "SELECT conrelid::regclass::text, conname, contype, pg_get_constraintdef(oid) FROM pg_constraint "
    "WHERE connamespace = 'public'::regnamespace AND contype <> 'n'",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "sequences": "SELECT sequencename, data_type::text, start_value, increment_by, cycle FROM pg_sequences",
    "options": "SELECT relname, reloptions FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
    "the rest": "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace "
    "UNION SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace AND typtype <> 'c' AND typelem = 0 "
    "UNION SELECT tgname FROM pg_trigger WHERE NOT tgisinternal "
    "UNION SELECT viewname FROM pg_views WHERE schemaname = 'public'",
}
NAMES = re.compile(r"(pk|fk|uq|ix|ck)_[a-z_]+")

# One row in every table of the newest schema, parents first.
ROWS = {
    "tenants": "INSERT INTO tenants (name) VALUES ('t')",
    "api_keys": "INSERT INTO api_keys (tenant_id, public_id, secret_hash, scopes) "
    "SELECT id, 'p', 'h', '{read}' FROM tenants",
    "sessions": "INSERT INTO sessions (tenant_id, name, model) SELECT id, 's', 'm' FROM tenants",
    "messages": "INSERT INTO messages (session_id, seq, role, body_bytes, body) "
    "SELECT id, 1, 'user', 2, 'x' FROM sessions",
    "jobs": "INSERT INTO jobs (tenant_id, session_id, trigger, priority, max_attempts) "
    "SELECT tenant_id, id, 'auto', 20, 5 FROM sessions",
    "attempts": "INSERT INTO attempts (job_id, lease_token, attempt, owner) SELECT id, 1, 1, 'w' FROM jobs",
    "job_events": "INSERT INTO job_events (job_id, type) SELECT id, 'e' FROM jobs",
    "results": "INSERT INTO results (job_id, session_id, lease_token, strategy, pre_tokens, post_tokens, usage, "
    "ptl_attempts, dropped, covers_through_seq, prefix_hash, degraded, hook_results, body) "
    "SELECT id, session_id, 1, 'fresh', 2, 1, '{}', 0, '{}', 1, 'h', false, '[]', 'x' FROM jobs",
    "breakers": "INSERT INTO breakers (session_id) SELECT id FROM sessions",
    "idempotency_keys": "INSERT INTO idempotency_keys (tenant_id, key, request_hash) SELECT id, 'k', 'h' FROM tenants",
    "hooks": "INSERT INTO hooks (tenant_id, event, url, secret, timeout_s) "
    "SELECT id, 'pre_compact', 'http://127.0.0.1:1', 'x', 5 FROM tenants",
    "webhook_endpoints": "INSERT INTO webhook_endpoints (tenant_id, url, events, secret) "
    "SELECT id, 'http://127.0.0.1:1', '{compaction.failed}', 'x' FROM tenants",
    "webhook_deliveries": "INSERT INTO webhook_deliveries (tenant_id, endpoint_id, event, payload) "
    "SELECT tenant_id, id, 'compaction.failed', '{}' FROM webhook_endpoints",
    "workers": "INSERT INTO workers (owner, slots, running, loop_lag_seconds) VALUES ('w', 1, 0, 0)",
    "provider_pauses": "INSERT INTO provider_pauses (provider, phase) VALUES ('p', 'paused')",
    "queue_depths": "INSERT INTO queue_depths (tenant_id, waiting, through_id) VALUES (0, 1, uuidv7())",
    "audit_entries": "INSERT INTO audit_entries (tenant_id, actor_tenant, actor_key, action) VALUES (0, 't', 'k', 'a')",
    "job_tallies": "INSERT INTO job_tallies (tenant_id, at, outcome, model, jobs) VALUES (0, now(), 'failed', 'm', 1)",
    "bulk_runs": "INSERT INTO bulk_runs (tenant_id, dry_run, way, force, prompt_version, through_session_id) "
    "SELECT id, false, 'live', false, 2, 1 FROM tenants",
    "bulk_batches": "INSERT INTO bulk_batches (tenant_id, run_id) SELECT tenant_id, id FROM bulk_runs",
    "bulk_items": "INSERT INTO bulk_items (run_id, session_id, state, content_hash, recipe, covers_through_seq) "
    "SELECT r.id, s.id, 'found', 'h', 'r', 1 FROM bulk_runs r, sessions s",
    "session_state": "INSERT INTO session_state (session_id, kind, key, body) "
    "SELECT id, 'files', 'k', 'x' FROM sessions",
}


def connected(url: str) -> Any:  # noqa: ANN401 - an engine's own context
    return create_engine(url, poolclass=NullPool).connect()


def catalog(url: str) -> dict[str, list[tuple[Any, ...]]]:
    with connected(url) as conn:
        found = {name: sorted(map(tuple, conn.exec_driver_sql(sql)), key=repr) for name, sql in CATALOG.items()}
    return {
        name: [row for row in rows if not str(row[0]).startswith("alembic_version")] for name, rows in found.items()
    }


def contents(conn: Connection) -> dict[str, list[str]]:
    """Every row of every table that there is, as text."""
    tables = conn.exec_driver_sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").scalars().all()
    names = [name for name in tables if name != "alembic_version"]
    return {name: list(conn.exec_driver_sql(f"SELECT t::text FROM {name} t").scalars()) for name in names}  # noqa: S608 - names from our tables


def filled(url: str) -> None:
    with connected(url) as conn:
        for sql in ROWS.values():
            conn.execute(text(sql))
        conn.commit()


def test_there_is_one_head() -> None:
    assert len(migrate.heads()) == 1


def test_files_are_numbered_in_their_order() -> None:
    files = sorted(path.name for path in (migrate.MIGRATIONS / "versions").glob("*.py"))
    assert [name.split("_")[0] for name in files] == REVISIONS
    assert [f"{number:04}" for number in range(1, len(files) + 1)] == REVISIONS


def test_every_revision_goes_forward_and_back_and_base_leaves_nothing(empty_database_url: str) -> None:
    nothing = catalog(empty_database_url)
    states = [nothing]
    for revision in REVISIONS:
        migrate.upgrade(empty_database_url, revision)
        assert migrate.current(empty_database_url) == revision
        states.append(catalog(empty_database_url))
    for revision, state in zip([*REVISIONS[::-1][1:], "base"], states[::-1][1:], strict=True):
        migrate.downgrade(empty_database_url, revision)
        assert catalog(empty_database_url) == state
    migrate.upgrade(empty_database_url)
    assert catalog(empty_database_url) == states[-1]


def test_alembic_sees_no_drift_between_tables_and_migrations(database_url: str) -> None:
    assert migrate.differences(database_url) == []


def test_alembic_would_see_drift(database_url: str) -> None:
    """The check checks: a lost index, a changed default, a new column are all seen."""
    with connected(database_url) as conn:
        conn.exec_driver_sql("DROP INDEX uq_jobs_waiting")
        conn.exec_driver_sql("ALTER TABLE jobs ALTER attempt SET DEFAULT 1")
        conn.exec_driver_sql("ALTER TABLE tenants ADD colour text")
        conn.commit()
    seen = " ".join(migrate.differences(database_url))
    assert "uq_jobs_waiting" in seen
    assert "attempt" in seen
    assert "colour" in seen


def test_migrations_make_exactly_the_schema_that_the_tables_describe(
    database_url: str, empty_database_url: str
) -> None:
    """Down to check constraints, predicates, sequences and storage options, which Alembic does not compare."""
    engine = create_engine(empty_database_url, poolclass=NullPool)
    metadata.create_all(engine)
    migrated, described = catalog(database_url), catalog(empty_database_url)
    for name in CATALOG:
        assert migrated[name] == described[name], name


def test_names_follow_the_convention(database_url: str) -> None:
    found = catalog(database_url)
    for table, name, kind, _ in found["constraints"]:
        assert name.startswith({"p": "pk_", "f": "fk_", "u": "uq_", "c": "ck_"}[kind] + table)
    for table, name, definition in found["indexes"]:
        assert NAMES.fullmatch(name)
        assert table in name
        assert name[:3] in ({"uq_", "pk_"} if "UNIQUE" in definition else {"ix_"})


def test_every_foreign_key_is_backed_by_an_index(database_url: str) -> None:
    """Otherwise the deletion of a session or tenant reads whole tables."""
    unbacked = (
        "SELECT conname FROM pg_constraint c WHERE contype = 'f' AND NOT EXISTS (SELECT 1 FROM pg_index i "
        "WHERE i.indrelid = c.conrelid AND i.indpred IS NULL AND i.indkey[0] = c.conkey[1])"
    )
    with connected(database_url) as conn:
        assert conn.exec_driver_sql(unbacked).all() == []


def test_every_table_has_a_sample_row_here(database_url: str) -> None:
    assert set(ROWS) == set(metadata.tables)


def test_migrating_a_filled_database_again_changes_nothing(database_url: str) -> None:
    filled(database_url)
    with connected(database_url) as conn:
        before = contents(conn)
    migrate.upgrade(database_url)
    with connected(database_url) as conn:
        assert contents(conn) == before
        assert all(len(rows) == 1 for rows in before.values())


@pytest.mark.parametrize("revision", REVISIONS[:-1] or ["0001"])
def test_data_survives_the_way_back_to_a_revision_and_forward_again(database_url: str, revision: str) -> None:
    filled(database_url)
    migrate.downgrade(database_url, revision)
    with connected(database_url) as conn:
        kept = {name: len(rows) for name, rows in contents(conn).items()}
    assert set(kept.values()) == {1}
    migrate.upgrade(database_url)
    with connected(database_url) as conn:
        after = {name: len(rows) for name, rows in contents(conn).items()}
    assert {name: after[name] for name in kept} == kept


def test_several_processes_that_start_at_once_migrate_once(empty_database_url: str) -> None:
    def start(_: int) -> int:
        code = f"from compaction.store import migrate; migrate.upgrade({empty_database_url!r})"
        return subprocess.run([sys.executable, "-c", code], check=False, cwd=migrate.MIGRATIONS.parent).returncode

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(start, range(4))) == [0, 0, 0, 0]
    assert migrate.differences(empty_database_url) == []


def test_a_migration_gives_up_soon_when_live_traffic_holds_its_lock(database_url: str) -> None:
    config = migrate._config(database_url)
    config.attributes["lock_timeout_seconds"] = 0.2
    with connected(database_url) as conn:
        conn.exec_driver_sql("SELECT 1 FROM jobs")  # holds a share lock on the table until the end
        with pytest.raises(OperationalError, match="lock timeout"):
            command.downgrade(config, "base")
    assert migrate.current(database_url) in REVISIONS  # whole steps or none
    migrate.upgrade(database_url)
    assert migrate.differences(database_url) == []


def seen(url: str, sql: str) -> None:
    """Returns once the query finds a row."""
    give_up_at = time.monotonic() + 30
    while time.monotonic() < give_up_at:
        with connected(url) as conn:
            if conn.exec_driver_sql(sql).first():
                return
        time.sleep(0.02)
    raise AssertionError(sql)


def test_indexes_of_the_queue_are_built_beside_live_traffic_and_other_migrators(database_url: str) -> None:
    """A build waits for an open transaction and holds up no writer; a second migrator waits for the first."""
    migrate.downgrade(database_url, "0007")
    with connected(database_url) as conn:
        for name in ("tenants", "sessions"):
            conn.execute(text(ROWS[name]))
        conn.commit()
    config = migrate._config(database_url)
    config.attributes["lock_timeout_seconds"] = 60
    asked = (
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%%pg_try_advisory_lock%%' AND datname = current_database()"
    )
    with ThreadPoolExecutor(2) as pool, connected(database_url) as slow:
        slow.execute(text("UPDATE jobs SET priority = 1"))
        first = pool.submit(command.upgrade, config, "head")
        seen(database_url, "SELECT 1 FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting for writers%%'")
        second = pool.submit(subprocess.run, [sys.executable, "-c",
            f"from compaction.store import migrate; migrate.upgrade({database_url!r})"], check=True,
            cwd=migrate.MIGRATIONS.parent)  # fmt: skip
        seen(database_url, f"{asked} AND pid <> pg_backend_pid()")
        with connected(database_url) as writer:
            writer.exec_driver_sql("SET lock_timeout = '2s'")
            writer.execute(text(ROWS["jobs"]))
            writer.commit()
        slow.rollback()
        first.result()
        second.result()
    assert migrate.differences(database_url) == []


def test_a_build_that_broke_off_is_begun_anew(database_url: str) -> None:
    """A unique index that cannot be built stays behind as invalid, under the name that is wanted."""
    migrate.downgrade(database_url, "0007")
    with connected(database_url) as conn:
        for name in ("tenants", "sessions"):
            conn.execute(text(ROWS[name]))
        for status in ("failed", "cancelled"):
            conn.execute(text(ROWS["jobs"]))
            conn.execute(text(f"UPDATE jobs SET status = '{status}', ended_at = now() WHERE status = 'queued'"))  # noqa: S608 - from above
        conn.commit()
        conn.execution_options(isolation_level="AUTOCOMMIT")
        with pytest.raises(IntegrityError):
            conn.exec_driver_sql("CREATE UNIQUE INDEX CONCURRENTLY ix_jobs_ended_at ON jobs (priority)")
    migrate.upgrade(database_url)
    with connected(database_url) as conn:
        assert conn.exec_driver_sql("SELECT 1 FROM pg_index WHERE NOT indisvalid").all() == []
    assert migrate.differences(database_url) == []


def test_alembics_own_command_works_from_the_repository(repository: Path, database_url: str) -> None:
    def alembic(*words: str) -> str:
        environment = {"COMPACTD_DATABASE_URL": database_url, "PATH": "/usr/bin:/bin"}
        run = [sys.executable, "-m", "alembic", *words]
        return subprocess.run(run, check=True, capture_output=True, text=True, cwd=repository, env=environment).stdout

    assert REVISIONS[-1] in alembic("current")
    sql = alembic("upgrade", "head", "--sql")
    for table in metadata.tables:
        assert f"CREATE TABLE {table}" in sql
