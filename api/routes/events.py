"""A job's timeline."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from api import openapi
from api.answers import page
from api.auth import Reader
from api.found import NO_JOB, found
from api.schemas.compactions import Event, EventPage
from api.schemas.fields import JobPath, PageQuery
from api.services import services
from compaction.store import cursors, jobs

router = APIRouter(tags=["compactions"])


@router.get(
    "/v1/compactions/{job_id}/events",
    summary="The timeline of a job",
    responses={200: openapi.gives(EventPage, "Events, oldest first"), **openapi.refuses(404)},
)
async def get_events(
    request: Request, caller: Reader, job_id: JobPath, query: Annotated[PageQuery, Query()]
) -> Response:
    """What happened to the job, in order: names and numbers, never content."""
    after_id = cursors.decode_number(query.cursor) or 0
    async with services(request).database.begin() as conn:
        found(await jobs.get(conn, caller.tenant_id, job_id), NO_JOB)
        rows = await jobs.events(conn, job_id, after_id, query.limit + 1)
    kept = rows[: query.limit]
    following = cursors.encode_number(kept[-1].id) if len(rows) > query.limit else None
    return page([Event(id=row.id, at=row.at, type=row.type, data=row.data) for row in kept], following)
