"""Whose turn it is, as conditions: whether a job's session is free, whether a job may be rung for at once.

Whoever brings a job rings for it himself when nothing waits ahead; otherwise the reconciler decides who is next.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, ColumnElement, FromClause, and_, func, literal_column, or_, select, true

from compaction.core.fairness import BULK
from compaction.core.jobs import PRIORITIES
from compaction.store.job_rows import status_is
from compaction.store.tables import jobs


def is_free(job: FromClause = jobs) -> ColumnElement[bool]:
    """No other job of the session is active. A retrying job is itself the active one; the index allows no second."""
    other = jobs.alias("other")
    # Not `exists`: the planner would read all active jobs rather than ask the index for one session's; and not `is
    # null`, of which it believes that it is hardly ever true, so that it would sort everything that waits.
    active = (
        select(literal_column("true", Boolean))
        .where(other.c.session_id == job.c.session_id, status_is(other, "running", "retrying"))
        .limit(literal_column("1"))
        .scalar_subquery()
    )
    return or_(status_is(job, "retrying"), active.is_not(true()))


def is_soon(priority: ColumnElement[Any], session_id: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether a job of this class and session may be rung for at once: nothing as urgent waits. Bulk never may.

    Looks at one or two index entries per class, however many jobs wait.
    """
    waiting = jobs.alias("waiting")
    others = waiting.c.session_id != session_id
    urgent = [~_is_due(waiting, level, others) | (literal_column(str(level)) > priority) for level in _LEVELS]
    return and_(priority < literal_column(str(BULK)), *urgent)


def others_wait() -> ColumnElement[bool]:
    """Whether anything but bulk is due and only waits for a slot, rung for or not."""
    waiting = jobs.alias("waiting")
    return or_(*(_is_due(waiting, level, is_free(waiting)) for level in _LEVELS))


_LEVELS = sorted({level for level in PRIORITIES.values() if level < BULK})


def _is_due(waiting: FromClause, level: int, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether a job of the class `level` is due that meets the condition."""
    first = (
        select(literal_column("true", Boolean))
        .select_from(waiting)
        .where(
            status_is(waiting, "queued", "retrying"),
            waiting.c.priority == literal_column(str(level)),
            waiting.c.not_before <= func.now(),
            condition,
        )
        .order_by(waiting.c.not_before, waiting.c.id)  # the order of ix_jobs_ready, so that it is read and no other
        .limit(literal_column("1"))
    )
    return first.scalar_subquery().is_not_distinct_from(true())
