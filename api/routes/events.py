"""A job's timeline: a list, or a stream of events."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from api import event_stream, openapi
from api.answers import page
from api.auth import Reader
from api.event_stream import LastEventId
from api.found import NO_JOB, found
from api.schemas.compactions import Event, EventPage
from api.schemas.fields import JobPath, PageQuery
from api.services import services
from compaction.store import cursors, jobs
from compaction.store.job_rows import JobRow

router = APIRouter(tags=["compactions"])


@router.get(
    "/v1/compactions/{job_id}/events",
    summary="The timeline of a job; a stream with Accept: text/event-stream",
    responses={
        200: openapi.gives(EventPage, "Events, oldest first") | openapi.streams(event_stream.EXAMPLE),
        204: {"description": "The stream that Last-Event-ID belongs to has ended"},
        **openapi.refuses(404),
    },
)
async def get_events(
    request: Request,
    caller: Reader,
    job_id: JobPath,
    query: Annotated[PageQuery, Query()],
    last_event_id: LastEventId = None,
) -> Response:
    """What happened to the job, in order: names and numbers, never content.

    With `Accept: text/event-stream` the answer is a stream: the events so far, then each as it happens, `job` when the
    state changes, and `end` with the finished job. `Last-Event-ID` goes on behind an event that was seen.
    """
    held = services(request)
    after_id = cursors.decode_number(query.cursor) or 0
    async with held.database.connect() as conn:
        job = found(await jobs.get(conn, caller.tenant_id, job_id), NO_JOB)
        if event_stream.MEDIA_TYPE in request.headers.get("accept", ""):
            return _stream(request, job, after_id, last_event_id)
        rows = await jobs.events(conn, job_id, after_id, query.limit + 1)
    kept = rows[: query.limit]
    following = cursors.encode_number(kept[-1].id) if len(rows) > query.limit else None
    return page([Event(id=row.id, at=row.at, type=row.type, data=row.data) for row in kept], following)


def _stream(request: Request, job: JobRow, after_id: int, last_event_id: str | None) -> Response:
    seen_id, is_over = event_stream.resumed(last_event_id)
    if is_over:
        return Response(status_code=204)
    frames = event_stream.frames(services(request), job, max(after_id, seen_id))
    return StreamingResponse(frames, media_type=event_stream.MEDIA_TYPE, headers=event_stream.HEADERS)
