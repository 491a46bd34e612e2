"""Reading jobs: one, a page of them, and what happened to one."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, Select, Text, bindparam, literal_column, select
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


SLACK_SECONDS = 3600  # an id and its created_at are a transaction apart, and clocks are set back by seconds

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


_FILTERS: dict[str, ColumnElement[bool]] = {
    "b_status": jobs.c.status == bindparam("b_status", type_=Text),
    "b_session_name": jobs.c.session_id == _SESSION,
    "b_error_code": jobs.c.error.is_not(None)  # in the words of ix_jobs_error_code
    & (literal_column("jobs.error ->> 'code'", Text) == bindparam("b_error_code", type_=Text)),
    "b_trigger": jobs.c.trigger == bindparam("b_trigger", type_=Text),
    "b_created_after": jobs.c.created_at >= bindparam("b_created_after", type_=jobs.c.created_at.type),
    "b_created_before": jobs.c.created_at < bindparam("b_created_before", type_=jobs.c.created_at.type),
    # Ids grow with time: they find the place in the index, the times decide.
    "b_first_id": jobs.c.id >= bindparam("b_first_id", type_=jobs.c.id.type),
    "b_end_id": jobs.c.id < bindparam("b_end_id", type_=jobs.c.id.type),
    "b_after_id": jobs.c.id < bindparam("b_after_id", type_=jobs.c.id.type),
}


@cache
def _page(given: frozenset[str]) -> Select[Any]:
    """The statement for these filters: each set of them is planned for itself."""
    conditions = [condition for name, condition in _FILTERS.items() if name in given]
    return rows().where(jobs.c.tenant_id == _TENANT_ID, *conditions).order_by(jobs.c.id.desc()).limit(_LIMIT)


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
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    limit: int = 100,
    cursor: str | None = None,
) -> tuple[list[JobRow], str | None]:
    """A page of the tenant's jobs, newest first, and the cursor of the next page if there is one.

    `created_after` is the first moment that counts, `created_before` the first that counts no more.

    Raises errors.InvalidRequest for a made-up cursor.
    """
    filters = {
        "b_status": plain.optional_text("status", status),
        "b_session_name": plain.optional_text("session_id", session_name),
        "b_error_code": plain.optional_text("error_code", error_code),
        "b_trigger": plain.optional_text("trigger", trigger),
        "b_created_after": created_after,
        "b_created_before": created_before,
        "b_first_id": None if created_after is None else _id_around(created_after, -SLACK_SECONDS),
        "b_end_id": None if created_before is None else _id_around(created_before, SLACK_SECONDS),
        "b_after_id": cursors.decode_uuid(cursor),
    }
    given = {name: value for name, value in filters.items() if value is not None}
    values = given | {"b_tenant_id": tenant_id, "b_limit": limit + 1}
    found = await conn.execute(_page(frozenset(given)), values)
    listed = [JobRow(*row) for row in found]
    page = listed[:limit]
    return page, cursors.encode_uuid(page[-1].id) if len(listed) > limit else None


def _id_around(moment: datetime, shift_seconds: int) -> str:
    """The smallest id of that moment, shifted: UUIDv7 begins with 48 bits of milliseconds."""
    milliseconds = min(max(int((moment.timestamp() + shift_seconds) * 1000), 0), 2**48 - 1)
    return str(uuid.UUID(int=milliseconds << 80))


async def events(conn: AsyncConnection, job_id: str, after_id: int = 0, limit: int = 1000) -> list[JobEvent]:
    """The job's timeline after the event `after_id`, oldest first."""
    known = plain.job_id(job_id)
    if known is None:
        return []
    found = await conn.execute(
        _EVENTS, {"b_job_id": known, "b_after_id": min(after_id, plain.MAX_NUMBER), "b_limit": limit}
    )
    return [JobEvent(*row) for row in found]


async def list_attempts(conn: AsyncConnection, job_id: str) -> list[AttemptRow]:
    """The job's runs, oldest first."""
    known = plain.job_id(job_id)
    if known is None:
        return []
    return [AttemptRow(*row) for row in await conn.execute(_ATTEMPTS, {"b_job_id": known})]
