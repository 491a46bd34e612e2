"""The result of a job."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response

from api import openapi
from api.answers import fresh_answer
from api.auth import Reader
from api.found import NO_JOB, found, why_no_result
from api.result_view import result_document
from api.schemas.fields import JobPath
from api.schemas.results import Result
from api.services import services
from compaction.errors import NotFound
from compaction.store import jobs, results

router = APIRouter(tags=["compactions"])


@router.get(
    "/v1/compactions/{job_id}/result",
    summary="The result of a job",
    responses={
        200: openapi.gives(Result, "The compacted conversation"),
        304: openapi.UNCHANGED,
        **openapi.refuses(404),
    },
)
async def get_result(request: Request, caller: Reader, job_id: JobPath) -> Response:
    """The compacted conversation, as envelopes and ready to send. 404 says why there is none (yet)."""
    async with services(request).database.begin() as conn:
        job = found(await jobs.get(conn, caller.tenant_id, job_id), NO_JOB)
        row = await results.get(conn, caller.tenant_id, job_id)
    if row is None:
        raise NotFound(why_no_result(job))
    return fresh_answer(request, await asyncio.to_thread(result_document, row))
