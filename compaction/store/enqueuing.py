"""Enqueue: a request becomes the session's waiting job, or joins the one that waits already.

One INSERT … ON CONFLICT on the unique index of waiting jobs decides, so that any number of enqueues at once make one
job. When a claim turns the waiting job into the running one at that moment, Postgres tries anew and a fresh job waits:
it will see the newest history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Executable,
    Integer,
    Text,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, Insert
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction import errors
from compaction.core.backpressure import NO_CAPS, Caps
from compaction.core.jobs import (
    MAX_ATTEMPTS,
    MAX_JOB_AGE_SECONDS,
    PRIORITIES,
    RANKS,
    Scope,
    StrategyName,
    Trigger,
)
from compaction.core.jsonbytes import Json
from compaction.store import depths, plain, turns
from compaction.store.job_rows import JobRow, rows, status_is
from compaction.store.tables import jobs

LAST_YEAR = 9998  # a job's deadline lies a day later, and dates end with the year 9999
FOREIGN_KEY_VIOLATION = "23503"  # Postgres's SQLSTATE
PULLING: frozenset[Trigger] = frozenset({"manual", "reactive"})  # somebody waits: a retry must not sleep through it


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """What a producer asks for. `session_id` is our row id; `not_before` None means as soon as possible."""

    tenant_id: int
    session_id: int
    trigger: Trigger
    scope: Scope = field(default_factory=Scope)
    instructions: str | None = field(default=None, repr=False)
    strategy: StrategyName | None = None
    fallback: str | None = None
    force: bool = False
    token_gap: int | None = None
    not_before: datetime | None = None
    metadata: Mapping[str, Json] = field(default_factory=dict)
    traceparent: str | None = None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The job that stands for the request now; `created` is False when it joined the session's waiting job.

    `ring` says that the caller, who announced it, is to ring for it.
    """

    job: JobRow
    created: bool
    ring: bool = False


# What belongs to the request and comes from one of the two when they meet.
_REQUEST = ("trigger", "scope_kind", "scope_uuid", "instructions", "strategy", "fallback", "force", "token_gap")
_MARKS = ("metadata", "traceparent")


def _insert(*, capped: bool) -> Insert:
    start = func.coalesce(bindparam("b_not_before", type_=jobs.c.not_before.type), func.now())
    given = {name: bindparam(f"b_{name}", type_=jobs.c[name].type) for name in ("tenant_id", "session_id", *_REQUEST)}
    deadline = func.greatest(start, func.now()) + literal_column(f"interval '{MAX_JOB_AGE_SECONDS} seconds'")
    priority = bindparam("b_priority", type_=jobs.c.priority.type)
    at_once = (
        bindparam("b_announced", type_=Boolean) & (start <= func.now()) & turns.is_soon(priority, given["session_id"])
    )
    values: dict[str, ColumnElement[Any]] = given | {
        "metadata": cast(bindparam("b_metadata", type_=Text), JSONB),
        "traceparent": bindparam("b_traceparent", type_=Text),
        "priority": priority,
        "not_before": start,
        "deadline_at": deadline,
        "max_attempts": literal_column(str(MAX_ATTEMPTS)),
        "dispatched_at": case((at_once, func.now())),
    }
    if not capped:
        return upsert(jobs).values(**values)
    return upsert(jobs).from_select(list(values), select(*values.values()).where(or_(~depths.is_full(), _joins())))


def _joins() -> ColumnElement[bool]:
    """The session's waiting job is there already: joining it adds none."""
    waiting = jobs.alias("waiting")
    return exists().where(waiting.c.session_id == bindparam("b_session_id"), status_is(waiting, "queued"))


def _meet(new: Insert) -> dict[str, ColumnElement[Any]]:
    """The waiting job after a request has joined it."""
    ranks: list[Any] = [
        (jobs.c.trigger == literal_column(f"'{name}'"), literal_column(str(rank))) for name, rank in RANKS.items()
    ]
    wins = bindparam("b_rank", type_=Integer) >= case(*ranks)
    winner = {name: case((wins, new.excluded[name]), else_=jobs.c[name]) for name in (*_REQUEST, *_MARKS)}
    return winner | {
        "priority": func.least(jobs.c.priority, new.excluded.priority),
        "not_before": func.least(jobs.c.not_before, new.excluded.not_before),
        "deadline_at": func.greatest(jobs.c.deadline_at, new.excluded.deadline_at),  # a new request has a day as well
        "coalesced": jobs.c.coalesced + literal_column("1"),
        "dispatched_at": func.coalesce(new.excluded.dispatched_at, jobs.c.dispatched_at),
        # A batch's answer may wait here for its turn: it knows neither this request nor what was said since.
        "paid_summary": literal_column("NULL", jobs.c.paid_summary.type),
        "covers_through_seq": literal_column("NULL", jobs.c.covers_through_seq.type),
    }


def _enqueue(*, pulling: bool, capped: bool) -> Executable:
    new = _insert(capped=capped)
    joined = new.on_conflict_do_update(
        index_elements=["session_id"], index_where=status_is(jobs, "queued"), set_=_meet(new)
    )
    put = joined.returning(jobs).cte("put")
    told = rows(put).add_columns(func.coalesce(put.c.dispatched_at == func.now(), literal_column("false")))
    if not pulling:
        return told
    pulled = (
        update(jobs)
        .where(
            jobs.c.session_id == bindparam("b_session_id", type_=jobs.c.session_id.type),
            status_is(jobs, "retrying"),
            jobs.c.not_before > func.now(),
        )
        .values(not_before=func.now(), dispatched_at=None)
    )
    return told.add_cte(pulled.cte("pulled"))


_ENQUEUE = {
    (pulling, capped): _enqueue(pulling=pulling, capped=capped) for pulling in (False, True) for capped in (False, True)
}


async def enqueue(conn: AsyncConnection, new: NewJob, *, announced: bool = False, caps: Caps = NO_CAPS) -> Enqueued:
    """Makes the session's waiting job, or joins the one there is; atomic by itself.

    Joining: priority rises, the parameters of the higher-ranked trigger win (of equal ranks the newer's), the start
    moves to now (or to the newer's `not_before` where that is earlier). A manual or reactive request also ends the
    pause of the session's retrying job. `announced` says that the caller rings the doorbell itself right after the
    commit when `Enqueued.ring` says so: hardly anything waits ahead. Then the reconciler rings only when that seems to
    be lost; otherwise it decides whose turn it is.

    Raises errors.InvalidRequest for text that cannot be stored, errors.NotFound when the session is gone, and for a job
    that would be one more than `caps` allow errors.TooManyRequests or errors.Unavailable; joining is never refused.
    """
    capped = caps != NO_CAPS
    values = _values(new) | {"b_announced": announced} | (depths.cap_values(caps) if capped else {})
    try:
        put = (await conn.execute(_ENQUEUE[new.trigger in PULLING, capped], values)).one_or_none()
    except IntegrityError as error:
        if getattr(error.orig, "sqlstate", None) == FOREIGN_KEY_VIOLATION:  # retention took it meanwhile
            raise errors.NotFound("The session is gone, and its jobs with it.") from None
        raise
    if put is None:
        raise await depths.refusal(conn, new.tenant_id, caps)
    job = JobRow(*put[:-1])
    return Enqueued(job, created=job.coalesced == 0, ring=put[-1])


def _start(not_before: datetime | None) -> datetime | None:
    if not_before is not None and not_before.year > LAST_YEAR:
        raise errors.InvalidRequest(
            f"not_before lies after the year {LAST_YEAR}.", fields=(("not_before", "is too late"),)
        )
    return not_before


def _values(new: NewJob) -> dict[str, object]:
    return {
        "b_tenant_id": new.tenant_id,
        "b_session_id": new.session_id,
        "b_trigger": new.trigger,
        "b_scope_kind": new.scope.kind,
        "b_scope_uuid": plain.optional_text("scope.uuid", new.scope.uuid),
        "b_instructions": plain.optional_text("instructions", new.instructions),
        "b_strategy": new.strategy,
        "b_fallback": plain.optional_text("fallback", new.fallback),
        "b_force": new.force,
        "b_token_gap": plain.optional_number("token_gap", new.token_gap),
        "b_not_before": _start(new.not_before),
        "b_metadata": plain.json_text("metadata", dict(new.metadata)),
        "b_traceparent": plain.optional_text("traceparent", new.traceparent),
        "b_priority": PRIORITIES[new.trigger],
        "b_rank": RANKS[new.trigger],
    }
