"""How a job ends without its worker: somebody cancels it, its worker is gone, or its deadline passes while it waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Insert,
    Integer,
    Select,
    Text,
    bindparam,
    case,
    cast,
    func,
    insert,
    literal_column,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.jobs import BACKOFF_BASE_SECONDS, BACKOFF_CAP_SECONDS, FAILED_EVENTS, JITTER, MAX_CRASHES
from compaction.errors import ProviderTimeout, WorkerLost
from compaction.store import job_reads, outbox, plain
from compaction.store.job_rows import CANCELLED_ERROR, READY, RUNNING, JobRow, problem, rows, status_is
from compaction.store.notify import CHANNEL
from compaction.store.tables import attempts, job_events, jobs, sessions


@dataclass(frozen=True, slots=True)
class Reaped:
    """A job that the reaper took care of. `crashed_out`: it has failed for good. `token` is the lease it took away."""

    job_id: str
    token: int | None
    crashed_out: bool
    status: str


_ID = bindparam("b_job_id", type_=jobs.c.id.type)
_TENANT_ID = bindparam("b_tenant_id", type_=BigInteger)
_LIMIT = bindparam("b_limit", type_=Integer)
_LOST_FOR_NOW = problem(WorkerLost("The worker died during this job; it is tried again."), retryable=True)
_LOST = problem(
    WorkerLost("The worker died during this job once too often. The job was stopped to protect the others.")
)
_OVERDUE = problem(ProviderTimeout("The job's deadline passed before it could be finished."))


def _told(ended: CTE) -> ColumnElement[Any]:
    return func.pg_notify(literal_column(f"'{CHANNEL}'"), cast(ended.c.id, Text))


def _event(ended: CTE, name: str) -> Insert:
    data = func.jsonb_build_object(literal_column("'status'"), ended.c.status)
    return insert(job_events).from_select(
        ["job_id", "type", "data"], select(ended.c.id, literal_column(f"'{name}'"), data)
    )


_FAILURE = (jobs.c.scope_kind, jobs.c.attempt)  # what an event of a failure needs beside outbox.ENDED


def _events(ended: CTE, name: str) -> Insert:
    """What happened, then the event of the failure with the fields of `compaction.events.failed`; none of a cancel."""
    full = ended.c.scope_kind == literal_column("'full'")
    source = select(sessions.c.query_source).where(sessions.c.id == ended.c.session_id).scalar_subquery()
    data = func.jsonb_build_object(
        *(literal_column("'trigger'"), ended.c.trigger),
        *(literal_column("'auto'"), ended.c.trigger == literal_column("'auto'")),
        *(literal_column("'query_source'"), source),
        *(literal_column("'attempt'"), ended.c.attempt),
        *(literal_column("'code'"), ended.c.error.op("->")(literal_column("'code'"))),
        *(literal_column("'retryable'"), ended.c.error.op("->")(literal_column("'retryable'"))),
        *(literal_column("'scope'"), ended.c.scope_kind),
    )
    whole, partial = (literal_column(f"'{FAILED_EVENTS[kind]}'", Text) for kind in ("full", "from"))
    status = func.jsonb_build_object(literal_column("'status'"), ended.c.status)
    told = union_all(
        select(
            ended.c.id,
            literal_column("1").label("place"),
            literal_column(f"'{name}'", Text).label("type"),
            status.label("data"),
        ),
        select(ended.c.id, literal_column("2"), case((full, whole), else_=partial), data).where(
            ended.c.status != literal_column("'cancelled'")
        ),
    ).subquery("told")
    in_order = select(told.c.id, told.c.type, told.c.data).order_by(told.c.id, told.c.place)
    return insert(job_events).from_select(["job_id", "type", "data"], in_order)


def _cancel() -> Select[Any]:
    ended = (
        update(jobs)
        .where(jobs.c.id == _ID, jobs.c.tenant_id == _TENANT_ID, status_is(jobs, "queued", "running", "retrying"))
        .values(
            status=case((READY, literal_column("'cancelled'")), else_=jobs.c.status),
            ended_at=case((READY, func.now())),
            error=case((READY, CANCELLED_ERROR), else_=jobs.c.error),
            paid_summary=case((READY, None), else_=jobs.c.paid_summary),
            cancel_requested_at=func.coalesce(jobs.c.cancel_requested_at, func.now()),
        )
        .returning(jobs)
        .cte("ended")
    )
    event = _event(ended, "cancel_requested").cte("event")
    return rows(ended).add_columns(_told(ended)).add_cte(event, outbox.news(ended).cte("news"))


def _reap() -> Select[Any]:
    picked = (
        select(jobs.c.id, jobs.c.lease_token)
        .where(RUNNING, jobs.c.lease_expires_at < func.now())
        .limit(_LIMIT)
        .with_for_update(skip_locked=True, key_share=True)
        .cte("picked")
    )
    cancelled = jobs.c.cancel_requested_at.is_not(None)
    over = or_(
        jobs.c.crashes + literal_column("1") >= literal_column(str(MAX_CRASHES)),
        jobs.c.attempt >= jobs.c.max_attempts,
        jobs.c.deadline_at <= func.now(),
    )
    again = ~or_(cancelled, over)
    ended = (
        update(jobs)
        .where(jobs.c.id == picked.c.id)
        .values(
            status=case(
                (cancelled, literal_column("'cancelled'")),
                (over, literal_column("'failed'")),
                else_=literal_column("'retrying'"),
            ),
            crashes=jobs.c.crashes + literal_column("1"),
            not_before=case((again, func.now() + _backoff()), else_=jobs.c.not_before),
            ended_at=case((again, None), else_=func.now()),
            error=case((cancelled, CANCELLED_ERROR), (over, _LOST), else_=_LOST_FOR_NOW),
            paid_summary=case((again, jobs.c.paid_summary)),
            lease_token=None,
            lease_owner=None,
            lease_expires_at=None,
            dispatched_at=None,
        )
        .returning(*outbox.ENDED, *_FAILURE, picked.c.lease_token)
        .cte("ended")
    )
    closed = (
        update(attempts)
        .where(attempts.c.job_id == ended.c.id, attempts.c.lease_token == ended.c.lease_token)
        .values(ended_at=func.now(), outcome=literal_column("'expired'"), error=ended.c.error)
    )
    told = select(ended.c.id, ended.c.lease_token, ended.c.status, _told(ended))
    events = _events(ended, "lease_expired").cte("events")
    return told.add_cte(closed.cte("closed"), events, outbox.news(ended).cte("news"))


def _backoff() -> ColumnElement[Any]:
    """The pause of core.jobs.backoff_seconds, by crashes, with Postgres's own dice."""
    doubled = func.power(literal_column("2"), jobs.c.crashes)
    seconds = func.least(literal_column(str(BACKOFF_CAP_SECONDS)), literal_column(str(BACKOFF_BASE_SECONDS)) * doubled)
    spread: ColumnElement[Any] = literal_column(str(1 - JITTER)) + literal_column(str(2 * JITTER)) * func.random()
    return seconds * spread * literal_column("interval '1 second'")


def _overdue() -> Select[Any]:
    picked = (
        select(jobs.c.id)
        .where(READY, jobs.c.deadline_at <= func.now())
        .order_by(jobs.c.deadline_at)
        .limit(_LIMIT)
        .with_for_update(skip_locked=True, key_share=True)
        .cte("picked")
    )
    ended = (
        update(jobs)
        .where(jobs.c.id == picked.c.id)
        .values(
            status=literal_column("'failed'"),
            ended_at=func.now(),
            error=func.coalesce(jobs.c.error, _OVERDUE),
            paid_summary=None,
            dispatched_at=None,
        )
        .returning(*outbox.ENDED, *_FAILURE)
        .cte("ended")
    )
    events = _events(ended, "deadline_passed").cte("events")
    return select(ended.c.id, ended.c.status, _told(ended)).add_cte(events, outbox.news(ended).cte("news"))


_CANCEL = _cancel()
_REAP = _reap()
_FAIL_OVERDUE = _overdue()


async def cancel(conn: AsyncConnection, tenant_id: int, job_id: str) -> JobRow | None:
    """Cancels the tenant's job; None when there is no such job.

    A queued or retrying one is cancelled at once; a running one is marked for its worker, which hears of it with its
    next beat; one that has ended stays as it is.
    """
    known = plain.job_id(job_id)
    if known is None:
        return None
    cancelled = (await conn.execute(_CANCEL, {"b_job_id": known, "b_tenant_id": tenant_id})).one_or_none()
    if cancelled is not None:
        return JobRow(*cancelled[:-1])
    return await job_reads.get(conn, tenant_id, known)


async def reap_expired(conn: AsyncConnection, limit: int) -> list[Reaped]:
    """Takes up to `limit` jobs from workers that beat no more, and fails up to `limit` that wait past their deadline.

    A lost job runs again after a pause, until it has lost MAX_CRASHES workers or used up its attempts; one that
    somebody wanted cancelled is cancelled. Safe with two callers at once, and when a worker commits
    at that moment.
    """
    lost = await conn.execute(_REAP, {"b_limit": limit})
    reaped = [Reaped(job_id, token, status == "failed", status) for job_id, token, status, _ in lost]
    overdue = await conn.execute(_FAIL_OVERDUE, {"b_limit": limit})
    return reaped + [Reaped(job_id, None, crashed_out=True, status=status) for job_id, status, _ in overdue]
