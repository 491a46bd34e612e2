"""Searching jobs over one tenant's or everybody's, newest first, with a bound on how many rows one look may touch.

What an index can find is looked up by it; what is left (trigger, strategy, whether the session moved on) is judged on
the rows that were found so. A look that touches SCAN rows without filling its page says how far back it came.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Integer,
    Select,
    Subquery,
    Text,
    bindparam,
    exists,
    func,
    literal_column,
    select,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.jobs import Status
from compaction.core.jsonbytes import Json
from compaction.store import cursors, plain
from compaction.store.job_reads import SLACK_SECONDS
from compaction.store.job_rows import status_is
from compaction.store.reach import Reach
from compaction.store.tables import breakers, jobs, results, sessions, tenants

SCAN = 10_000  # rows that one look touches at most: some 50 ms


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs. `open_only`: failed or cancelled ones whose session has no newer job, so that nobody dealt with them.

    `blocked_only`: those of sessions whose breaker is open.
    """

    status: str | None = None
    code: str | None = None
    session: str | None = None
    trigger: str | None = None
    strategy: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    open_only: bool = False
    live_only: bool = False
    blocked_only: bool = False


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job as lists show it. `strategy` is the one that made the result, else the one that was asked for."""

    id: str
    tenant_id: int
    tenant: str
    session_id: int
    session: str
    status: str
    trigger: str
    strategy: str | None
    attempt: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    was_compacted: bool | None
    reason: str | None
    error: Mapping[str, Json] | None
    pre_tokens: int | None
    post_tokens: int | None


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page of jobs. `cursor` leads on; `looked_back_to` is set when the look was cut before the page was full."""

    jobs: list[FoundJob]
    cursor: str | None
    looked_back_to: datetime | None = None


UNHAPPY: tuple[Status, ...] = ("failed", "cancelled")
_ID = jobs.c.id.type
_CODE: ColumnElement[Any] = literal_column("jobs.error ->> 'code'", Text)
_BY_INDEX: dict[str, ColumnElement[bool]] = {
    "b_code": jobs.c.error.is_not(None) & (bindparam("b_code", type_=Text) == _CODE),
    "b_first_id": jobs.c.id >= bindparam("b_first_id", type_=_ID),
    "b_end_id": jobs.c.id < bindparam("b_end_id", type_=_ID),
    "b_before_id": jobs.c.id < bindparam("b_before_id", type_=_ID),
}
_COLUMNS = ("id", "tenant_id", "session_id", "status", "trigger", "strategy", "attempt", "created_at", "started_at")
_MORE_COLUMNS = ("ended_at", "was_compacted", "reason", "error")


def _conditions(found: Subquery, given: frozenset[str]) -> list[ColumnElement[bool]]:
    """What is judged on the rows that an index found."""
    blocked = exists().where(breakers.c.session_id == found.c.session_id, breakers.c.opened_at.is_not(None))
    known: dict[str, ColumnElement[bool]] = {
        "b_trigger": found.c.trigger == bindparam("b_trigger", type_=Text),
        "b_strategy": func.coalesce(results.c.strategy, found.c.strategy) == bindparam("b_strategy", type_=Text),
        "b_after": found.c.created_at >= bindparam("b_after", type_=jobs.c.created_at.type),
        "b_before": found.c.created_at < bindparam("b_before", type_=jobs.c.created_at.type),
        "open_only": status_is(found, *UNHAPPY) & (newest_of(found) == found.c.id),
        "live_only": status_is(found, "queued", "running", "retrying"),
        "blocked_only": blocked,
    }
    return [condition for name, condition in known.items() if name in given]


def newest_of(found: FromClause) -> ColumnElement[Any]:
    """The newest job of the row's session. One look into an index for each row: as an anti-join it read all jobs."""
    newest = jobs.alias("newest")
    of_session = select(newest.c.id).where(newest.c.session_id == found.c.session_id)
    return of_session.order_by(newest.c.id.desc()).limit(literal_column("1")).scalar_subquery()


def _scanned(reach: Reach, status: str | None, given: frozenset[str]) -> Subquery:
    """The rows that one look touches, the newest first."""
    if status is None and "open_only" in given:  # each state by its own index: both together would be read by age
        both = union_all(*(select(_of_status(reach, one, given).subquery()) for one in UNHAPPY)).subquery()
        return select(both).order_by(both.c.id.desc()).limit(literal_column(str(SCAN))).subquery("found")
    return _of_status(reach, status, given).subquery("found")


def _of_status(reach: Reach, status: str | None, given: frozenset[str]) -> Select[Any]:
    """The newest rows of one state or of all. The state stands in words: partial indexes are found by them."""
    wanted = [condition for name, condition in _BY_INDEX.items() if name in given]
    if status is not None:
        wanted.append(jobs.c.status == literal_column(f"'{status}'"))
    elif "live_only" in given:
        wanted.append(status_is(jobs, "queued", "running", "retrying"))
    if status in UNHAPPY:
        wanted.append(jobs.c.ended_at.is_not(None))  # the words of ix_jobs_unhappy
    if "b_session" in given:
        of_name = select(sessions.c.id).where(sessions.c.name == bindparam("b_session", type_=Text))
        wanted.append(jobs.c.session_id.in_(of_name.where(*reach.wall(sessions.c.tenant_id))))
    columns = [jobs.c[name] for name in (*_COLUMNS, *_MORE_COLUMNS)]
    rows = select(*columns).where(*reach.wall(jobs.c.tenant_id), *wanted)
    return rows.order_by(jobs.c.id.desc()).limit(literal_column(str(SCAN)))


def _matching(reach: Reach, status: str | None, given: frozenset[str]) -> Select[Any]:
    """Those of the touched rows that are wanted; the result's row is looked up only where it decides."""
    found = _scanned(reach, status, given)
    matching = select(found)
    if "b_strategy" in given:
        matching = matching.outerjoin(results, results.c.job_id == found.c.id)
    return matching.where(*_conditions(found, given)).order_by(found.c.id.desc())


@cache
def _page(reach: Reach, status: str | None, given: frozenset[str]) -> Select[Any]:
    found = _matching(reach, status, given).limit(bindparam("b_limit", type_=Integer)).subquery("matching")
    names = {
        "tenant": tenants.c.name,
        "session": sessions.c.name,
        "strategy": func.coalesce(results.c.strategy, found.c.strategy),
        "pre_tokens": results.c.pre_tokens,
        "post_tokens": results.c.post_tokens,
    }
    columns = [names[name] if name in names else found.c[name] for name in FoundJob.__dataclass_fields__]
    return (
        select(*columns)
        .select_from(found)
        .join(sessions, sessions.c.id == found.c.session_id)
        .join(tenants, tenants.c.id == found.c.tenant_id)
        .outerjoin(results, results.c.job_id == found.c.id)
        .order_by(found.c.id.desc())
    )


@cache
def _extent(reach: Reach, status: str | None, given: frozenset[str]) -> Select[Any]:
    """How many rows a look touches, and the oldest of them."""
    found = _scanned(reach, status, given)
    last = select(found.c.id).order_by(found.c.id).limit(literal_column("1")).scalar_subquery()
    return select(func.count(), last, func.min(found.c.created_at)).select_from(found)


@dataclass(frozen=True, slots=True)
class Counted:
    """How many jobs match and of how many sessions; `at_least` when the look was cut before its end."""

    jobs: int
    sessions: int
    at_least: bool


@cache
def _count(reach: Reach, status: str | None, given: frozenset[str]) -> Select[Any]:
    matching = _matching(reach, status, given).subquery("matching")
    touched = select(func.count()).select_from(_scanned(reach, status, given)).scalar_subquery()
    return select(func.count(), func.count(matching.c.session_id.distinct()), touched).select_from(matching)


async def count(conn: AsyncConnection, reach: Reach, wanted: JobFilter) -> Counted:
    """How many of the newest SCAN jobs that an index finds match."""
    values, given = _given(wanted, None)
    jobs_, sessions_, touched = (
        await conn.execute(_count(_same_for_all(reach), wanted.status, given), values | reach.values)
    ).one()
    return Counted(jobs_, sessions_, touched >= SCAN)


async def search(
    conn: AsyncConnection, reach: Reach, wanted: JobFilter, *, limit: int = 50, cursor: str | None = None
) -> FoundPage:
    """A page of jobs, newest first. Raises errors.InvalidRequest for a made-up cursor."""
    values, given = _given(wanted, cursor)
    walled = _same_for_all(reach)
    bound = values | reach.values
    rows = await conn.execute(_page(walled, wanted.status, given), bound | {"b_limit": limit + 1})
    listed = [FoundJob(*row) for row in rows]
    kept = listed[:limit]
    if len(listed) > limit:
        return FoundPage(kept, cursors.encode_uuid(kept[-1].id))
    touched, last, back_to = (await conn.execute(_extent(walled, wanted.status, given), bound)).one()
    if touched < SCAN:
        return FoundPage(kept, None)
    return FoundPage(kept, cursors.encode_uuid(last), back_to)


def _same_for_all(reach: Reach) -> Reach:
    """What a statement is made for: it is the same for every tenant."""
    return Reach(0) if reach.is_walled else Reach()


def _given(wanted: JobFilter, cursor: str | None) -> tuple[dict[str, Any], frozenset[str]]:
    """The values of a look, and the names of its conditions."""
    values = _values(wanted, cursor)
    flags = {name for name in ("open_only", "live_only", "blocked_only") if getattr(wanted, name)}
    return values, frozenset(values) | flags


def _values(wanted: JobFilter, cursor: str | None) -> dict[str, Any]:
    values = {
        "b_code": plain.optional_text("code", wanted.code),
        "b_session": plain.optional_text("session", wanted.session),
        "b_trigger": plain.optional_text("trigger", wanted.trigger),
        "b_strategy": plain.optional_text("strategy", wanted.strategy),
        "b_after": wanted.after,
        "b_before": wanted.before,
        "b_first_id": None if wanted.after is None else id_around(wanted.after, -SLACK_SECONDS),
        "b_end_id": None if wanted.before is None else id_around(wanted.before, SLACK_SECONDS),
        "b_before_id": cursors.decode_uuid(cursor),
    }
    return {name: value for name, value in values.items() if value is not None}


def id_around(moment: datetime, shift_seconds: int = 0) -> str:
    """The smallest id of that moment, shifted: UUIDv7 begins with 48 bits of milliseconds."""
    milliseconds = min(max(int((moment.timestamp() + shift_seconds) * 1000), 0), 2**48 - 1)
    return str(uuid.UUID(int=milliseconds << 80))
