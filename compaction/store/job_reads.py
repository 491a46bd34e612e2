"""Reading jobs: one, a page of them, and what happened to one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, Text, bindparam, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.jobs import Status, Trigger
from compaction.core.jsonbytes import Json
from compaction.store import cursors, plain
from compaction.store.job_rows import JobRow, rows
from compaction.store.tables import attempts, job_events, jobs, sessions


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One entry of a job's timeline; ids grow within a job."""

    id: int
    at: datetime
    type: str
    data: dict[str, Json]


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One run of a job. `outcome` is None while it runs."""

    attempt: int
    token: int
    owner: str
    started_at: datetime
    ended_at: datetime | None
    outcome: str | None
    error: dict[str, Json] | None
    usage: dict[str, Json] | None


_ID = bindparam("b_job_id", type_=jobs.c.id.type)
_TENANT_ID = bindparam("b_tenant_id", type_=BigInteger)
_LIMIT = bindparam("b_limit", type_=Integer)

_GET = rows().where(jobs.c.id == _ID, jobs.c.tenant_id == _TENANT_ID)
_SESSION = (
    select(sessions.c.id)
    .where(sessions.c.tenant_id == _TENANT_ID, sessions.c.name == bindparam("b_session_name", type_=Text))
    .scalar_subquery()
)
_EVENTS = (
    select(job_events.c.id, job_events.c.at, job_events.c.type, job_events.c.data)
    .where(job_events.c.job_id == _ID, job_events.c.id > bindparam("b_after_id", type_=BigInteger))
    .order_by(job_events.c.id)
    .limit(_LIMIT)
)
_ATTEMPTS = (
    select(
        attempts.c.attempt,
        attempts.c.lease_token,
        attempts.c.owner,
        attempts.c.started_at,
        attempts.c.ended_at,
        attempts.c.outcome,
        attempts.c.error,
        attempts.c.usage,
    )
    .where(attempts.c.job_id == _ID)
    .order_by(attempts.c.lease_token)
)


async def get(conn: AsyncConnection, tenant_id: int, job_id: str) -> JobRow | None:
    """The tenant's job of that id."""
    known = plain.job_id(job_id)
    if known is None:
        return None
    row = (await conn.execute(_GET, {"b_job_id": known, "b_tenant_id": tenant_id})).one_or_none()
    return None if row is None else JobRow(*row)


async def list_jobs(  # noqa: PLR0913 - the filters of the list
    conn: AsyncConnection,
    tenant_id: int,
    *,
    status: Status | None = None,
    session_name: str | None = None,
    error_code: str | None = None,
    trigger: Trigger | None = None,
    limit: int = 100,
    cursor: str | None = None,
) -> tuple[list[JobRow], str | None]:
    """A page of the tenant's jobs, newest first, and the cursor of the next page if there is one.

    Raises errors.InvalidRequest for a made-up cursor.
    """
    after = cursors.decode_uuid(cursor)
    filters: list[tuple[str, object, ColumnElement[bool]]] = [
        ("b_status", status, jobs.c.status == bindparam("b_status", type_=Text)),
        ("b_session_name", plain.optional_text("session_id", session_name), jobs.c.session_id == _SESSION),
        ("b_error_code", plain.optional_text("error_code", error_code), _has_error_code()),
        ("b_trigger", trigger, jobs.c.trigger == bindparam("b_trigger", type_=Text)),
        ("b_after_id", after, jobs.c.id < bindparam("b_after_id", type_=jobs.c.id.type)),
    ]
    given = [(name, value, condition) for name, value, condition in filters if value is not None]
    statement = rows().where(jobs.c.tenant_id == _TENANT_ID, *(condition for _, _, condition in given))
    values: dict[str, Any] = {name: value for name, value, _ in given}
    values |= {"b_tenant_id": tenant_id, "b_limit": limit + 1}
    found = await conn.execute(statement.order_by(jobs.c.id.desc()).limit(_LIMIT), values)
    listed = [JobRow(*row) for row in found]
    page = listed[:limit]
    return page, cursors.encode_uuid(page[-1].id) if len(listed) > limit else None


def _has_error_code() -> ColumnElement[bool]:
    """In the words of ix_jobs_error_code."""
    code = literal_column("jobs.error ->> 'code'", Text)
    return jobs.c.error.is_not(None) & (code == bindparam("b_error_code", type_=Text))


async def events(conn: AsyncConnection, job_id: str, after_id: int = 0, limit: int = 1000) -> list[JobEvent]:
    """The job's timeline after the event `after_id`, oldest first."""
    known = plain.job_id(job_id)
    if known is None:
        return []
    found = await conn.execute(_EVENTS, {"b_job_id": known, "b_after_id": after_id, "b_limit": limit})
    return [JobEvent(*row) for row in found]


async def list_attempts(conn: AsyncConnection, job_id: str) -> list[AttemptRow]:
    """The job's runs, oldest first."""
    known = plain.job_id(job_id)
    if known is None:
        return []
    return [AttemptRow(*row) for row in await conn.execute(_ATTEMPTS, {"b_job_id": known})]
