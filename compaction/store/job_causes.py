"""Why jobs failed: the newest failures by their cause, with how many of them nobody has dealt with yet.

A failure is open while its session has no newer job: a retry, or the agent's next compaction, settles it. Looking is
bounded: the newest SCAN failures are grouped, and the answer says when there are more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Boolean, ColumnElement, Select, Text, bindparam, cast, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store.job_rows import status_is
from compaction.store.job_search import id_around, newest_of
from compaction.store.reach import Reach
from compaction.store.tables import jobs, sessions

SCAN = 5_000  # failures that are grouped: 30 ms, and more than a person looks at
MAX_MESSAGES = 3  # shown of a cause, the most frequent


@dataclass(frozen=True, slots=True)
class Cause:
    """The failures of one error code. `open` are those nobody has dealt with; the sample is the newest, open if any."""

    code: str
    count: int
    open: int
    sessions: int
    tenants: int
    newest_at: datetime
    oldest_at: datetime
    sample_id: str
    sample_session: str
    messages: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Causes:
    """All causes, the one with most open failures first. `cut_at`: older failures were not looked at."""

    causes: tuple[Cause, ...]
    cut_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Failure:
    id: str
    tenant_id: int
    session_id: int
    session: str
    code: str | None
    message: str | None
    ended_at: datetime
    open: bool


@cache
def _failures(*, walled: bool) -> Select[Any]:
    is_open: ColumnElement[bool] = cast(newest_of(jobs) == jobs.c.id, Boolean)
    return (
        select(
            jobs.c.id,
            jobs.c.tenant_id,
            jobs.c.session_id,
            sessions.c.name,
            literal_column("jobs.error ->> 'code'", Text),
            literal_column("jobs.error ->> 'message'", Text),
            jobs.c.ended_at,
            is_open,
        )
        .join(sessions, sessions.c.id == jobs.c.session_id)
        .where(
            status_is(jobs, "failed"),
            jobs.c.ended_at.is_not(None),  # the words of ix_jobs_unhappy
            jobs.c.id >= bindparam("b_first_id", type_=jobs.c.id.type),
            *Reach(0 if walled else None).wall(jobs.c.tenant_id),
        )
        .order_by(jobs.c.id.desc())
        .limit(literal_column(str(SCAN)))
    )


async def causes(conn: AsyncConnection, reach: Reach, since: datetime) -> Causes:
    """The failures of jobs that were made since then, by cause."""
    values = {"b_first_id": id_around(since), **reach.values}
    found = [_Failure(*row) for row in await conn.execute(_failures(walled=reach.is_walled), values)]
    return Causes(grouped(found), found[-1].ended_at if len(found) == SCAN else None)


def grouped(failures: Iterable[_Failure]) -> tuple[Cause, ...]:
    """The failures, newest first, by code."""
    by_code: defaultdict[str, list[_Failure]] = defaultdict(list)
    for failure in failures:
        by_code[failure.code or "internal"].append(failure)
    found = [_cause(code, members) for code, members in by_code.items()]
    return tuple(sorted(found, key=lambda cause: (-cause.open, -cause.count, cause.code)))


def _cause(code: str, members: list[_Failure]) -> Cause:
    waiting = [one for one in members if one.open]
    sample = (waiting or members)[0]
    messages = Counter(one.message or "" for one in members).most_common(MAX_MESSAGES)
    return Cause(
        code=code,
        count=len(members),
        open=len(waiting),
        sessions=len({one.session_id for one in members}),
        tenants=len({one.tenant_id for one in members}),
        newest_at=max(one.ended_at for one in members),
        oldest_at=min(one.ended_at for one in members),
        sample_id=sample.id,
        sample_session=sample.session,
        messages=tuple(messages),
    )
