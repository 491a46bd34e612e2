"""The queue's way out: a worker claims a job by its id, and learns which job of the session comes after it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Double,
    Select,
    Text,
    bindparam,
    case,
    cast,
    exists,
    extract,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningUpdate

from compaction.core.breaker import BreakerState
from compaction.core.jobs import MAX_CRASHES, MAX_JOB_AGE_SECONDS, MAX_SUSPECTS
from compaction.core.jsonbytes import Json
from compaction.core.pausing import Phase
from compaction.store import bodies, plain, session_rows, turns
from compaction.store.job_rows import READY, WAITING, JobRow, columns, status_is
from compaction.store.session_rows import SessionRow
from compaction.store.tables import (
    attempts,
    breakers,
    hooks,
    jobs,
    lease_tokens,
    provider_pauses,
    session_state,
    sessions,
    tenants,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A job that this worker runs now, with the facts that its first step needs.

    `token` fences every later write. `claimed_at` is Postgres's clock; `age_seconds` counts towards the job's deadline.
    """

    job: JobRow
    token: int
    covers_through_seq: int
    paid_summary: bytes | None = field(repr=False)
    session: SessionRow
    tenant: str
    breaker: BreakerState
    claimed_at: datetime
    age_seconds: float
    spent: tuple[dict[str, Json], ...] = ()  # the records of earlier attempts' calls (attempts.usage)
    parameters: bytes | None = field(default=None, repr=False)  # of the session, packed (sessions.parameters_in)
    has_state: bool = True  # the session stores entries of state
    has_hooks: bool = True  # the tenant has HTTP hooks
    on_trial: bool = False  # the provider was paused until a moment ago: whether this job's call is answered decides


_ID = bindparam("b_job_id", type_=jobs.c.id.type)
_SECOND: ColumnElement[Any] = literal_column("interval '1 second'")
_JOB_COLUMNS = len(JobRow.__dataclass_fields__)
_SESSION_COLUMNS = len(SessionRow.__dataclass_fields__)


def _provider_is(phase: Phase) -> ColumnElement[bool]:
    """Whether the claiming worker's provider is in that phase. A worker without one calls nobody."""
    mine = provider_pauses.c.provider == bindparam("b_provider", type_=Text)
    return exists().where(mine, provider_pauses.c.phase == literal_column(f"'{phase}'"))


def _may_join() -> ColumnElement[bool]:
    """`core.jobs.may_join` for the claiming worker, so that a job which may not costs no attempt on record.

    Two claims at the same moment do not see each other: the worker asks once more.
    """
    suspect = jobs.alias("suspect")
    here = (status_is(suspect, "running"), suspect.c.lease_owner == bindparam("b_owner", type_=Text))
    last_chance: ColumnElement[Any] = literal_column(str(MAX_CRASHES - 1))
    suspects = select(func.count()).where(*here, suspect.c.crashes > literal_column("0")).scalar_subquery()
    alone = or_(jobs.c.crashes >= last_chance, exists().where(*here, suspect.c.crashes >= last_chance))
    room = case((alone, literal_column("1")), else_=literal_column(str(MAX_SUSPECTS)))
    return or_(jobs.c.crashes == literal_column("0"), suspects < room)


def _claim() -> Select[Any]:
    # The share lock waits for an append that is under way and keeps later ones out until the claim stands: an append
    # either lies inside the snapshot or knows of it.
    head = select(sessions.c.head_seq).where(sessions.c.id == jobs.c.session_id).with_for_update(read=True)
    claimed = (
        update(jobs)
        .where(
            jobs.c.id == _ID,
            READY,
            jobs.c.not_before <= func.now(),
            jobs.c.cancel_requested_at.is_(None),
            or_(jobs.c.deadline_at.is_(None), jobs.c.deadline_at > func.now()),
            turns.is_free(),
            ~_provider_is("paused"),
            _may_join(),
        )
        .values(
            status=literal_column("'running'"),
            attempt=jobs.c.attempt + literal_column("1"),
            lease_token=lease_tokens.next_value(),
            lease_owner=bindparam("b_owner", type_=Text),
            lease_expires_at=func.now() + bindparam("b_lease_seconds", type_=Double) * _SECOND,
            covers_through_seq=func.coalesce(jobs.c.covers_through_seq, head.correlate(jobs).scalar_subquery()),
            started_at=func.coalesce(jobs.c.started_at, func.now()),
        )
        .returning(jobs)
        .cte("claimed")
    )
    attempt = insert(attempts).from_select(
        ["job_id", "lease_token", "attempt", "owner"],
        select(claimed.c.id, claimed.c.lease_token, claimed.c.attempt, claimed.c.lease_owner),
    )
    left = cast(extract("epoch", claimed.c.deadline_at - func.now()), Double)
    spent = select(func.jsonb_agg(attempts.c.usage)).where(
        attempts.c.job_id == claimed.c.id, attempts.c.usage.is_not(None)
    )
    return (
        select(
            *columns(claimed),
            *session_rows.COLUMNS,
            tenants.c.name,
            claimed.c.lease_token,
            claimed.c.paid_summary,
            breakers.c.failures,
            breakers.c.opened_at,
            breakers.c.last_error_code,
            func.now(),
            left,
            _provider_is("trial"),
            spent.scalar_subquery(),
            sessions.c.parameters,
            exists().where(session_state.c.session_id == claimed.c.session_id),
            exists().where(hooks.c.tenant_id == claimed.c.tenant_id, hooks.c.enabled),
        )
        .select_from(claimed)
        .join(sessions, sessions.c.id == claimed.c.session_id)
        .join(tenants, tenants.c.id == claimed.c.tenant_id)
        .outerjoin(breakers, breakers.c.session_id == claimed.c.session_id)
        .add_cte(attempt.cte("attempt"))
    )


def _next() -> ReturningUpdate[Any]:
    following = (
        jobs.c.session_id == bindparam("b_session_id", type_=jobs.c.session_id.type),
        WAITING,
        jobs.c.not_before <= func.now(),
    )
    return (
        update(jobs)
        .where(*following, turns.is_soon(jobs.c.priority, jobs.c.session_id))
        .values(dispatched_at=func.now())
        .returning(jobs.c.id)
    )


_CLAIM = _claim()
_NEXT = _next()


async def claim(
    conn: AsyncConnection, job_id: str, owner: str, lease_seconds: float, *, provider: str | None = None
) -> Claim | None:
    """Takes the job for `owner`; None when it is not ready: taken, ended, not due, or its session has an active job.

    A worker whose `provider` is paused gets none, and one that holds jobs which lost a worker gets few more of them
    (`core.jobs.may_join`). Atomic by itself. The snapshot (covers_through_seq) is fixed by the
    first claim and kept over all attempts. After None because two claims met, a transaction around this call is void:
    claim alone, or on `Database.connect()`.
    """
    known = plain.job_id(job_id)
    if known is None:
        return None
    try:
        values = {"b_job_id": known, "b_owner": owner, "b_lease_seconds": lease_seconds, "b_provider": provider}
        found = await conn.execute(_CLAIM, values)
    except IntegrityError as error:
        if error.orig is not None and "uq_jobs_active" in str(error.orig):
            return None
        raise
    row = found.one_or_none()
    if row is None:
        return None
    job = JobRow(*row[:_JOB_COLUMNS])
    session = SessionRow(*row[_JOB_COLUMNS : _JOB_COLUMNS + _SESSION_COLUMNS])
    rest = row[_JOB_COLUMNS + _SESSION_COLUMNS :]
    tenant, token, paid_summary, failures, opened_at, code, now, left, on_trial, spent, *asked = rest
    return Claim(
        job=job,
        token=token,
        covers_through_seq=job.covers_through_seq or 0,
        paid_summary=None if paid_summary is None else bodies.unpack_object(paid_summary),
        session=session,
        tenant=tenant,
        breaker=BreakerState(failures or 0, opened_at, code),
        claimed_at=now,
        age_seconds=0.0 if left is None else MAX_JOB_AGE_SECONDS - left,
        spent=tuple(spent or ()),
        parameters=asked[0],
        has_state=asked[1],
        has_hooks=asked[2],
        on_trial=on_trial,
    )


async def next_waiting(conn: AsyncConnection, session_id: int) -> str | None:
    """The session's waiting job if it is to start at once: ring for it. Ask after the commit that ended the active one.

    None also when others wait ahead of it: then its turn is the reconciler's to decide.
    """
    found: str | None = (await conn.execute(_NEXT, {"b_session_id": session_id})).scalar_one_or_none()
    return found
