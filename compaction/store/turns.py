"""Whose turn it is, as conditions: whether a job's session is free, and whether a job may be rung for at once."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, ColumnElement, Integer, and_, case, func, literal_column, or_, select, true

from compaction.core.fairness import BULK
from compaction.core.jobs import PRIORITIES
from compaction.store.job_rows import status_is
from compaction.store.tables import jobs

# As long as fewer jobs than this are due, whoever brings one rings for it himself; from then on the reconciler decides
# who is next. It is also the most that a crowd of direct rings can put before somebody else's.
DIRECT_RINGS = 32


def is_free() -> ColumnElement[bool]:
    """No other job of the session is active. A retrying job is itself the active one; the index allows no second."""
    other = jobs.alias("other")
    # Not `exists`: the planner would read all active jobs rather than ask the index for one session's; and not `is
    # null`, of which it believes that it is hardly ever true, so that it would sort everything that waits.
    active = (
        select(literal_column("true", Boolean))
        .where(other.c.session_id == jobs.c.session_id, status_is(other, "running", "retrying"))
        .limit(literal_column("1"))
        .scalar_subquery()
    )
    return or_(status_is(jobs, "retrying"), active.is_not(true()))


def is_soon(priority: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether a job of this class may be rung for at once: hardly any as urgent as it wait. Bulk never may.

    Looks at DIRECT_RINGS index entries per class at most, however many jobs wait.
    """
    levels = sorted({level for level in PRIORITIES.values() if level < BULK})
    ahead = sum((_due_of(level, priority) for level in levels), start=_NONE)
    return and_(priority < literal_column(str(BULK)), ahead < literal_column(str(DIRECT_RINGS)))


_NONE: ColumnElement[int] = literal_column("0", Integer)


def _due_of(level: int, priority: ColumnElement[Any]) -> ColumnElement[int]:
    """How many jobs of the class `level` are due, counted up to DIRECT_RINGS; 0 when it is less urgent."""
    waiting = jobs.alias("waiting")
    due = (
        select(literal_column("1"))
        .select_from(waiting)
        .where(
            status_is(waiting, "queued", "retrying"),
            waiting.c.priority == literal_column(str(level)),
            waiting.c.not_before <= func.now(),
        )
        .order_by(waiting.c.not_before, waiting.c.id)  # the order of ix_jobs_ready, so that it is read and no other
        .limit(literal_column(str(DIRECT_RINGS)))
        .subquery()
    )
    counted = select(func.count()).select_from(due).scalar_subquery()
    return case((literal_column(str(level)) <= priority, counted), else_=_NONE)
