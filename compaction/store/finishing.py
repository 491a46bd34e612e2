"""Finish: one statement applies a worker's frozen decision, or nothing at all when the lease is another's by now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from sqlalchemy import (
    CTE,
    BigInteger,
    Boolean,
    ColumnElement,
    Delete,
    Double,
    Insert,
    Integer,
    Select,
    Text,
    Update,
    and_,
    bindparam,
    case,
    cast,
    column,
    exists,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.breaker import BreakerChange
from compaction.core.jsonbytes import Json
from compaction.store import breakers, outbox, plain, session_state
from compaction.store.job_rows import CANCELLED_ERROR, RUNNING, status_is
from compaction.store.notify import CHANNEL
from compaction.store.results import NewResult
from compaction.store.tables import attempts, job_events, jobs, results, sessions

Outcome = Literal["succeeded", "skipped", "failed", "retrying", "snoozed", "released", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """What becomes of a running job.

    `delay_seconds` and `counted` matter for retrying: when it may run again, and whether this attempt counts (a release
    gives its number back). `refused_calls` are model calls that the provider turned away; they count for nothing.
    `outcome` (by default told from the rest) and `usage` go to the attempt's record, `events`
    to the job's timeline; what jsonb cannot carry in them is mended.
    """

    status: Literal["succeeded", "failed", "retrying", "cancelled"]
    delay_seconds: float = 0.0
    counted: bool = True
    snoozed: bool = False
    refused_calls: int = 0
    was_compacted: bool | None = None
    reason: str | None = None
    error: Mapping[str, Json] | None = None
    result: NewResult | None = None
    events: Sequence[tuple[str, Mapping[str, Json]]] = ()
    breaker: BreakerChange | None = None
    outcome: Outcome | None = None
    usage: Mapping[str, Json] | None = None
    forget: Sequence[tuple[str, str]] = ()  # entries of session state, by kind and key (`core.cleanup`)
    remember: tuple[str, str, bytes] | None = None  # one entry of session state to put: kind, key, JSON bytes


@dataclass(frozen=True, slots=True)
class Finished:
    """The decision stands. `session_waits`: another job of the session waited when it was applied."""

    session_waits: bool


_ID = bindparam("b_job_id", type_=jobs.c.id.type)
_TOKEN = bindparam("b_token", type_=BigInteger)
_STATUS = bindparam("b_status", type_=Text)
_NONE: ColumnElement[Any] = literal_column("0")
_RESULT_TEXTS = ("strategy", "model", "prefix_hash")
_RESULT_JSON = ("usage", "dropped", "context_management", "hook_results")
_RESULT_REST = (
    *("pre_tokens", "post_tokens", "cost_usd", "ptl_attempts", "covers_through_seq", "degraded", "body"),
    "prompt_version",
)


def _json(name: str) -> ColumnElement[Any]:
    return cast(bindparam(name, type_=Text), JSONB)


def _held() -> CTE:
    """The session of a job that is still ours, locked first: whoever locks both takes the session before the job."""
    ours = (jobs.c.id == _ID, jobs.c.lease_token == _TOKEN, RUNNING)
    found = select(sessions.c.id).join(jobs, jobs.c.session_id == sessions.c.id).where(*ours)
    return found.with_for_update(of=sessions, key_share=True).cte("held")


def _done(held: CTE | None) -> CTE:
    """The job leaves running. A retry that meets a request to cancel is over: nobody would take it up again."""
    retrying = _STATUS.op("=")(literal_column("'retrying'"))
    cancelled = and_(retrying, jobs.c.cancel_requested_at.is_not(None))
    again = and_(retrying, jobs.c.cancel_requested_at.is_(None))
    later = func.now() + bindparam("b_delay_seconds", type_=Double) * literal_column("interval '1 second'")
    ours = (jobs.c.id == _ID, jobs.c.lease_token == _TOKEN, RUNNING)
    return (
        update(jobs)
        .where(*ours, *(() if held is None else (jobs.c.session_id == held.c.id,)))
        .values(
            status=case((cancelled, literal_column("'cancelled'")), else_=_STATUS),
            attempt=jobs.c.attempt - bindparam("b_given_back", type_=Integer),
            model_calls=func.greatest(jobs.c.model_calls - bindparam("b_refused_calls", type_=Integer), _NONE),
            snoozes=jobs.c.snoozes + bindparam("b_snoozed", type_=Integer),
            not_before=case((again, later), else_=jobs.c.not_before),
            ended_at=case((again, None), else_=func.now()),
            lease_token=None,
            lease_owner=None,
            lease_expires_at=None,
            dispatched_at=None,
            was_compacted=bindparam("b_was_compacted", type_=Boolean),
            reason=bindparam("b_reason", type_=Text),
            error=case(
                (cancelled, CANCELLED_ERROR),
                (_STATUS.op("=")(literal_column("'succeeded'")), None),
                else_=func.coalesce(_json("b_error"), jobs.c.error),
            ),
            paid_summary=case((again, jobs.c.paid_summary), else_=None),
        )
        .returning(*outbox.ENDED)
        .cte("done")
    )


def _attempt(done: CTE) -> Update:
    outcome = bindparam("b_outcome", type_=Text)
    return (
        update(attempts)
        .where(attempts.c.job_id == done.c.id, attempts.c.lease_token == _TOKEN)
        .values(
            ended_at=func.now(),
            outcome=case((done.c.status == literal_column("'cancelled'"), done.c.status), else_=outcome),
            error=_json("b_error"),
            usage=_json("b_usage"),
        )
    )


def _result(done: CTE) -> Insert:
    names = (*_RESULT_TEXTS, *_RESULT_REST)
    plain_values = [bindparam(f"b_{name}", type_=results.c[name].type) for name in names]
    json_values = [_json(f"b_result_{name}") for name in _RESULT_JSON]
    return insert(results).from_select(
        ["job_id", "session_id", "lease_token", *names, *_RESULT_JSON],
        select(done.c.id, done.c.session_id, _TOKEN, *plain_values, *json_values),
    )


def _live_view(done: CTE) -> Update:
    """The session goes on with the result. An ephemeral one does not: its job run again has the same input."""
    moved = update(sessions).where(sessions.c.id == done.c.session_id, ~sessions.c.is_ephemeral)
    return moved.values(live_job_id=done.c.id, updated_at=func.now())


def events_of(done: CTE) -> Insert:
    """The rows of `b_event_types` and `b_event_data`, in their order, for the `done` job."""
    given = (
        func.unnest(bindparam("b_event_types", type_=ARRAY(Text)), bindparam("b_event_data", type_=ARRAY(Text)))
        .table_valued(column("type", Text), column("data", Text), with_ordinality="place")
        .render_derived(name="given")
    )
    listed = select(done.c.id, given.c.type, cast(given.c.data, JSONB)).join_from(done, given, literal_column("true"))
    return insert(job_events).from_select(["job_id", "type", "data"], listed.order_by(given.c.place))


@cache
def _finish(*, result: bool, breaker: str | None, events: bool, forget: bool, remember: bool) -> Select[Any]:
    """The statement for this kind of decision; each of the few that occur is compiled once."""
    done = _done(_held() if result else None)
    parts: list[Delete | Insert | Update] = [_attempt(done), outbox.news(done)]
    if forget:
        parts.append(session_state.clearing(done))
    if remember:
        parts.append(session_state.remembering(done))
    if result:
        parts += [_result(done), _live_view(done)]
    if breaker is not None:
        parts.append(breakers.failing(done) if breaker == "failure" else breakers.closing(done))
    if events:
        parts.append(events_of(done))
    told = func.pg_notify(literal_column(f"'{CHANNEL}'"), cast(done.c.id, Text))
    waiting = jobs.alias("waiting")
    waits = exists().where(waiting.c.session_id == done.c.session_id, status_is(waiting, "queued"))
    return select(waits, told).add_cte(*(part.cte(f"part_{place}") for place, part in enumerate(parts)))


async def finish(conn: AsyncConnection, job_id: str, token: int, decision: Finish) -> Finished | None:
    """Applies the decision; None when the lease is not the job's any more, and then nothing is written.

    One statement, atomic by itself: job, attempt, result, live view, breaker, events, webhooks' outbox and the news for
    who waits. A retry of a job that somebody asked to cancel ends as cancelled.
    """
    known = plain.job_id(job_id)
    if known is None:
        return None
    breaker = decision.breaker
    statement = _finish(
        result=decision.result is not None,
        breaker=None if breaker is None else "failure" if breaker.kind == "failure" else "success",
        events=bool(decision.events),
        forget=bool(decision.forget),
        remember=decision.remember is not None,
    )
    row = (await conn.execute(statement, _values(known, token, decision))).first()
    return None if row is None else Finished(session_waits=row[0])


def _values(job_id: str, token: int, decision: Finish) -> dict[str, Any]:
    values: dict[str, Any] = {
        "b_job_id": job_id,
        "b_token": token,
        "b_status": decision.status,
        "b_delay_seconds": decision.delay_seconds,
        "b_given_back": 0 if decision.counted else 1,
        "b_refused_calls": decision.refused_calls,
        "b_snoozed": int(decision.snoozed),
        "b_was_compacted": decision.was_compacted,
        "b_reason": decision.reason,
        "b_error": _optional_json(decision.error),
        "b_outcome": decision.outcome or _outcome(decision),
        "b_usage": _optional_json(decision.usage),
    }
    if decision.events:
        values["b_event_types"] = [name for name, _ in decision.events]
        values["b_event_data"] = [plain.mended_json_text(data) for _, data in decision.events]
    if decision.breaker is not None and decision.breaker.kind == "failure":
        values["b_breaker_code"] = decision.breaker.code
    if decision.result is not None:
        values |= _result_values(decision.result)
    if decision.forget:
        values |= session_state.clearing_values(decision.forget)
    if decision.remember is not None:
        values |= session_state.remembering_values(*decision.remember)
    return values


def _result_values(result: NewResult) -> dict[str, Any]:
    rest = {f"b_{name}": getattr(result, name) for name in (*_RESULT_TEXTS, *_RESULT_REST)}
    return rest | {f"b_result_{name}": _optional_json(getattr(result, name)) for name in _RESULT_JSON}


def _optional_json(value: Json) -> str | None:
    return None if value is None else plain.mended_json_text(value)


def _outcome(decision: Finish) -> Outcome:
    if decision.status == "succeeded":
        return "skipped" if decision.was_compacted is False else "succeeded"
    if decision.status == "retrying":
        return "snoozed" if decision.snoozed else "retrying" if decision.counted else "released"
    return decision.status
