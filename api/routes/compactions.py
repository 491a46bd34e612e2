"""Jobs: enqueue, look, wait, list, cancel, run again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from api import bodies, openapi
from api.answers import fresh_answer, json_answer, page
from api.auth import JobWriter, Reader
from api.found import NO_JOB, NO_SESSION, found
from api.idempotency import IdempotencyKey, once
from api.inline import Inline, inline_in, refuse_large
from api.looks import Seen
from api.retrying import again
from api.schemas.compactions import Asked, CompactionRequest, Job, JobPage, JobQuery
from api.schemas.fields import JobPath
from api.schemas.inline import InlineRequest
from api.services import services
from api.waiting import job_at_end, preferred_wait_seconds, retry_after_seconds
from compaction import tracing
from compaction.core import traces
from compaction.core.jobs import Scope
from compaction.errors import InvalidRequest
from compaction.store import jobs, sessions
from compaction.store.engine import Connection
from compaction.store.jobs import Enqueued, NewJob
from compaction.store.session_rows import SessionRow

router = APIRouter(tags=["compactions"])

MAX_DELAY_DAYS = 30  # a compaction planned for later than a month is a mistake in a date
TraceParent = Annotated[
    str | None, Header(alias="traceparent", description="W3C trace context: the job goes on with its trace")
]
_EXAMPLE = {
    "session_id": "agent-7:2026-11-30",
    "trigger": "manual",
    "instructions": "Keep the decisions about the database.",
    "metadata": {"asked_by": "deploy-bot"},
}
_NEXT = openapi.leads_to("job_id", "id", "get_job", "get_events", "get_result", "apply", "cancel", "retry")
_ACCEPTED: dict[int | str, openapi.Extra] = {
    200: openapi.gives(Job, "Joined a job of the session that waits already") | _NEXT,
    202: openapi.gives(Job, "Accepted and stored; Location says where to ask") | _NEXT,
}


@router.post(
    "/v1/compactions",
    status_code=202,
    summary="Enqueue a compaction",
    openapi_extra=openapi.takes(CompactionRequest, _EXAMPLE, InlineRequest),
    responses={**_ACCEPTED, **openapi.refuses(400, 404, 409, 413, 415, 429)},
)
async def enqueue(
    request: Request, caller: JobWriter, key: IdempotencyKey, traceparent: TraceParent = None
) -> Response:
    """Ask for a compaction of a stored session, or inline of messages in the body. The job is stored before the answer.

    A session has at most one waiting job: a second request joins it (200, `coalesced` grows), its priority rises and
    the higher-ranked trigger's parameters win. `Idempotency-Key` makes sending again safe. When too many jobs wait, a
    new one is refused: 429 for the tenant's own, 503 for all together, with Retry-After; joining never is.

    Inline, with `model` and `messages` in place of `session_id`, each request is a job of its own: nothing joins it, no
    breaker stops it, its `session_id` is null. Its messages are deleted together with its result.
    """
    held = services(request)
    body = await bodies.read(request, held.settings.max_body_bytes)
    order = await bodies.think(len(body), inline_in, body) or await _named(body, held.settings.max_request_bytes)
    if isinstance(order, Inline):
        refuse_large(order, held.settings.max_parameter_bytes)
    wanted = order.wanted if isinstance(order, Inline) else order
    not_before = _not_before(wanted.not_before)
    async with once(request, caller, key, body) as work:
        if work.replay is not None:
            return work.replay
        session = await _session(work.conn, caller.tenant_id, order)
        new = replace(_new_job(wanted, session), not_before=not_before, traceparent=_trace(traceparent))
        done = await jobs.enqueue(work.conn, new, announced=not_before is None, caps=held.settings.caps)
        if isinstance(order, Inline):
            await order.store_messages(work.conn, session)
        answer = await work.keep(_accepted(done))
    held.enqueued(done)
    return answer


@router.get(
    "/v1/compactions",
    summary="List jobs",
    responses={200: openapi.gives(JobPage, "Jobs, newest first"), **openapi.refuses()},
)
async def list_jobs(request: Request, caller: Reader, query: Annotated[JobQuery, Query()]) -> Response:
    """The jobs of the key's tenant, newest first."""
    held = services(request)
    async with held.database.connect() as conn:
        rows, following = await jobs.list_jobs(
            conn,
            caller.tenant_id,
            status=query.status,
            session_name=query.session_id,
            error_code=query.error_code,
            trigger=query.trigger,
            created_after=query.created_after,
            created_before=query.created_before,
            limit=query.limit,
            cursor=query.cursor,
        )
    return page([Job.of(row, await held.standstills.progress(row)) for row in rows], following)


@router.get(
    "/v1/compactions/{job_id}",
    summary="A job; long-polls with Prefer: wait",
    responses={200: openapi.gives(Job, "The job"), 304: openapi.UNCHANGED, **openapi.refuses(404)},
)
async def get_job(
    request: Request,
    caller: Reader,
    job_id: JobPath,
    prefer: Annotated[
        str | None, Header(description="wait=N: answer when the job has ended, at most N seconds later")
    ] = None,
) -> Response:
    """The job as it is now, or with `Prefer: wait=N` as it is when it ends."""
    held = services(request)

    async def read() -> Seen:
        return found(await held.looks.job(caller.tenant_id, job_id), NO_JOB)

    seconds = preferred_wait_seconds(prefer, held.settings.max_wait_seconds)
    seen = await (job_at_end(held, job_id, read, seconds, request.is_disconnected) if seconds else read())
    headers = {} if seen.row.done else {"Retry-After": str(retry_after_seconds(seen.row))}
    if seconds is not None:
        headers["Preference-Applied"] = f"wait={seconds}"
    return fresh_answer(request, seen.document, headers=headers)


@router.post(
    "/v1/compactions/{job_id}/cancel",
    summary="Cancel a job",
    responses={
        200: openapi.gives(Job, "Ended: cancelled now, or ended before"),
        202: openapi.gives(Job, "Running; it ends as soon as its worker hears of it"),
        **openapi.refuses(404),
    },
)
async def cancel(request: Request, caller: JobWriter, job_id: JobPath) -> Response:
    """Cancel a job. Asking again changes nothing; a job that has ended stays as it is."""
    async with services(request).database.begin() as conn:
        row = found(await jobs.cancel(conn, caller.tenant_id, job_id), NO_JOB)
    return json_answer(Job.of(row), 200 if row.done else 202)


@router.post(
    "/v1/compactions/{job_id}/retry",
    status_code=202,
    summary="Run a job again",
    responses={**_ACCEPTED, **openapi.refuses(404, 409, 429)},
)
async def retry(
    request: Request, caller: JobWriter, job_id: JobPath, key: IdempotencyKey, traceparent: TraceParent = None
) -> Response:
    """A new job with the parameters of one that has ended; it sees the session as it is now."""
    held = services(request)
    async with once(request, caller, key) as work:
        if work.replay is not None:
            return work.replay
        old = found(await jobs.get(work.conn, caller.tenant_id, job_id), NO_JOB)
        done = await again(work.conn, old, held.settings.caps, _trace(traceparent))
        answer = await work.keep(_accepted(done))
    held.enqueued(done)
    return answer


async def _named(body: bytes, limit_bytes: int) -> CompactionRequest:
    """A request that names a stored session, and so has no reason to be large."""
    bodies.refuse_large(body, limit_bytes)
    return await bodies.parse(body, CompactionRequest)


async def _session(conn: Connection, tenant_id: int, order: CompactionRequest | Inline) -> SessionRow:
    """The session to compact. Raises NotFound when the tenant has none of that name."""
    if isinstance(order, Inline):
        return await order.create_session(conn, tenant_id)
    return found(await sessions.get(conn, tenant_id, order.session_id), NO_SESSION)


def _trace(given: str | None) -> str | None:
    """Where the job's attempts go on: this request's span, or the caller's where nothing is recorded."""
    return tracing.current_traceparent() or traces.traceparent(given)


def _new_job(wanted: Asked, session: SessionRow) -> NewJob:
    return NewJob(
        tenant_id=session.tenant_id,
        session_id=session.id,
        trigger=wanted.trigger,
        scope=Scope(wanted.scope.kind, wanted.scope.uuid),
        instructions=wanted.instructions,
        strategy=wanted.strategy,
        fallback=wanted.fallback,
        force=wanted.force,
        token_gap=wanted.token_gap,
        metadata=wanted.metadata,
    )


def _accepted(done: Enqueued) -> Response:
    headers = {"Location": f"/v1/compactions/{done.job.id}", "Cache-Control": "no-store"}
    return json_answer(Job.of(done.job), 202 if done.created else 200, headers=headers)


def _not_before(wanted: datetime | None) -> datetime | None:
    """The time to begin, None for now. Raises InvalidRequest for one too far ahead."""
    now = datetime.now(UTC)
    if wanted is None or wanted <= now:
        return None
    if wanted - now > timedelta(days=MAX_DELAY_DAYS):
        fields = (("not_before", f"must be at most {MAX_DELAY_DAYS} days ahead"),)
        raise InvalidRequest("The body has wrong fields; see `errors`.", fields=fields)
    return wanted
