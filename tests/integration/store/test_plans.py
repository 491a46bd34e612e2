"""Plans: what runs for every job finds its rows by an index, however many jobs have ended before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Executable, text
from sqlalchemy.dialects.postgresql import asyncpg
from sqlalchemy.sql.elements import ClauseElement

from compaction.store import (
    breakers,
    dispatching,
    enqueuing,
    finishing,
    histories,
    job_ends,
    job_queue,
    job_reads,
    leases,
    live_views,
    results,
    retention,
    sessions,
    surroundings,
    tenants,
)
from compaction.store.engine import Database
from tests.integration.store.stage import Stage

pytestmark = pytest.mark.anyio

BIG = {"jobs", "messages", "sessions", "attempts", "job_events", "results", "breakers"}
FILLING = Path(__file__).with_name("filling.sql")


@pytest.fixture
def store_url(module_database_url: str) -> str:
    return module_database_url


@pytest.fixture
async def filled(stage: Stage) -> Stage:
    """The tables filled, once for the file, and the stage of the tenant that owns the rows."""
    if owners := await stage.query("SELECT tenant_id FROM sessions WHERE name = 's7'"):
        return replace(stage, tenant_id=owners[0][0])
    async with stage.database.begin() as conn:
        for statement in FILLING.read_text().split(";\n"):
            await conn.execute(text(statement), {"tenant": stage.tenant_id})
    async with stage.database.connect() as conn:
        await conn.exec_driver_sql("VACUUM ANALYZE")
    return stage


def compiled(statement: Executable, *, literal_binds: bool = False) -> str:
    """The SQL with $1, $2 … in the places of parameters, as the driver sends it, or with their values."""
    assert isinstance(statement, ClauseElement)
    dialect = asyncpg.dialect()  # type: ignore[no-untyped-call]  # only for its $1 places; the driver is not needed
    return str(statement.compile(dialect=dialect, compile_kwargs={"literal_binds": literal_binds}))


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


async def planned(database: Database, statement: Executable, *, literal_binds: bool = False) -> list[dict[str, Any]]:
    """The nodes of the plan that Postgres keeps for a prepared statement, or of the one for these values."""
    async with database.begin() as conn:
        if statement is dispatching._CANDIDATES:
            await conn.execute(dispatching._BY_INDEX)  # as `look` does
        driver = (await conn.get_raw_connection()).driver_connection
        assert isinstance(driver, psycopg.AsyncConnection)
        async with psycopg.AsyncCursor(driver) as cursor:  # text format: the simple protocol, which lets $1 stand
            await cursor.execute(
                f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {compiled(statement, literal_binds=literal_binds)}".encode()
            )
            [(plan,)] = await cursor.fetchall()
    return list(nodes(plan[0]["Plan"]))


STATEMENTS = {
    "enqueue": (enqueuing._ENQUEUE[False, False], set()),
    "enqueue, pulling": (enqueuing._ENQUEUE[True, False], {"uq_jobs_active"}),
    "enqueue, capped": (
        enqueuing._ENQUEUE[False, True],
        {"ix_jobs_waiting_tenant_id_id", "ix_jobs_waiting_id", "uq_jobs_waiting", "ix_jobs_ready"},
    ),
    "claim": (job_queue._CLAIM, {"pk_jobs", "uq_jobs_active", "pk_sessions"}),
    "ready tenants": (dispatching._TENANTS, {"ix_jobs_fair"}),
    "candidates": (dispatching._CANDIDATES, {"ix_jobs_fair", "uq_jobs_active"}),
    "running": (dispatching._RUNNING, {"uq_jobs_lease_token"}),
    "mark": (dispatching._MARK, {"pk_jobs"}),
    "next waiting": (job_queue._NEXT, {"uq_jobs_waiting", "ix_jobs_ready"}),
    "prune": (retention._PRUNE, {"pk_jobs", "pk_sessions"}),
    "sweep": (retention._OVER, {"ix_sessions_ephemeral", "ix_jobs_session_id_id"}),
    "swept": (retention._SWEEP, {"pk_sessions", "ix_jobs_session_id_id"}),
    "beat": (leases._BEAT, {"uq_jobs_lease_token"}),
    "progress": (leases._PROGRESS, {"uq_jobs_lease_token"}),
    "count a call": (leases._COUNT, {"uq_jobs_lease_token"}),
    "save a summary": (leases._SAVE, {"uq_jobs_lease_token"}),
    "finish": (
        finishing._finish(result=True, breaker="success", events=True, forget=True, remember=True),
        {"pk_attempts", "pk_sessions"},
    ),
    "finish, failing": (
        finishing._finish(result=False, breaker="failure", events=True, forget=False, remember=False),
        {"pk_attempts"},
    ),
    "cancel": (job_ends._CANCEL, {"pk_sessions"}),
    "reap": (job_ends._REAP, {"uq_jobs_lease_token", "pk_jobs", "pk_attempts"}),
    "fail overdue": (job_ends._FAIL_OVERDUE, {"ix_jobs_deadline", "pk_jobs"}),
    "get a job": (job_reads._GET, {"pk_sessions"}),
    "events": (job_reads._EVENTS, {"ix_job_events_job_id_id"}),
    "attempts": (job_reads._ATTEMPTS, {"pk_attempts"}),
    "get a result": (results._GET, {"pk_results"}),
    "what stands around a result": (surroundings._AROUND, {"pk_messages", "pk_sessions"}),
    "get a breaker": (breakers._GET, {"pk_breakers"}),
    "get a session to append": (sessions._GET_TO_APPEND, {"uq_sessions_tenant_id_name"}),
    "get a session": (sessions._GET, {"uq_sessions_tenant_id_name"}),
    "known uuids": (histories._KNOWN, {"uq_messages_session_id_uuid"}),
    "covered seq": (histories._COVERED, {"uq_jobs_active", "pk_results"}),
    "full view": (histories._FULL, {"pk_messages"}),
    "live view": (live_views._LIVE, {"pk_messages", "pk_sessions", "pk_results", "ix_messages_starts_live"}),
    "replaced view": (live_views._REPLACED, {"pk_messages", "pk_sessions", "pk_results"}),
    "authenticate": (tenants._FIND, set()),
}


@pytest.mark.parametrize("name", STATEMENTS)
async def test_the_statement_reads_no_big_table_from_end_to_end(filled: Stage, name: str) -> None:
    statement, wanted = STATEMENTS[name]
    plan = await planned(filled.database, statement)
    scanned = {node["Relation Name"] for node in plan if node["Node Type"] == "Seq Scan"}
    used = {node["Index Name"] for node in plan if "Index Name" in node}
    assert scanned & BIG == set()
    assert wanted <= used


@pytest.mark.parametrize(
    ("filters", "index"),
    [
        ({}, "ix_jobs_tenant_id_id"),
        ({"b_after_id": "ffffffff-ffff-7fff-8fff-ffffffffffff"}, "ix_jobs_tenant_id_id"),
        ({"b_trigger": "auto"}, "ix_jobs_tenant_id_id"),
        ({"b_status": "failed"}, "ix_jobs_tenant_id_status_id"),
        ({"b_status": "cancelled"}, "ix_jobs_tenant_id_status_id"),
        ({"b_error_code": "refusal"}, "ix_jobs_error_code"),
        ({"b_session_name": "s7"}, "ix_jobs_session_id_id"),
    ],
)
async def test_a_page_of_a_list_is_read_from_an_index(filled: Stage, filters: dict[str, str], index: str) -> None:
    statement = job_reads._page(frozenset(filters)).params(filters | {"b_tenant_id": filled.tenant_id, "b_limit": 11})
    plan = await planned(filled.database, statement, literal_binds=True)
    assert index in {node.get("Index Name") for node in plan}
    assert ("Seq Scan", "jobs") not in {(node["Node Type"], node.get("Relation Name")) for node in plan}


async def test_a_beat_and_a_progress_touch_no_index(filled: Stage) -> None:
    """They change only columns that no index knows: heap-only updates, as long as the page has room."""
    [(columns,)] = await filled.query(
        "SELECT array_agg(DISTINCT attname::text) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid "
        "AND (a.attnum = ANY(i.indkey) OR pg_get_expr(i.indpred, i.indrelid) ~ ('\\m' || attname || '\\M')) "
        "WHERE i.indrelid = 'jobs'::regclass"
    )
    assert {"lease_expires_at", "progress", "dispatched_at", "model_calls", "paid_summary"}.isdisjoint(columns)


async def test_the_query_planner_finds_due_jobs_without_sorting_all_of_them(filled: Stage) -> None:
    kinds = [node["Node Type"] for node in await planned(filled.database, dispatching._CANDIDATES)]
    assert "Sort" not in kinds
