"""The result of a job, in the format that its caller goes on with."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from api import openapi
from api.answers import JSON_TYPE, LINES_TYPE, fresh_answer
from api.auth import Reader
from api.found import NO_JOB, found, why_no_result
from api.result_view import written
from api.schemas.fields import JobPath
from api.schemas.results import LOG_EXAMPLE, AnthropicRequest, ChatRequest, Result, ResultQuery
from api.services import services
from compaction.errors import NotFound
from compaction.store import jobs, results, surroundings

router = APIRouter(tags=["compactions"])

_ANSWER = openapi.gives_one_of(
    "The compacted conversation", envelopes=Result, anthropic=AnthropicRequest, openai=ChatRequest
)
_ANSWER["content"][LINES_TYPE] = {"schema": {"type": "string"}, "example": LOG_EXAMPLE}


@router.get(
    "/v1/compactions/{job_id}/result",
    summary="The result of a job",
    responses={
        200: _ANSWER,
        304: openapi.UNCHANGED,
        **openapi.refuses(404),
    },
)
async def get_result(
    request: Request, caller: Reader, job_id: JobPath, query: Annotated[ResultQuery, Query()]
) -> Response:
    """The compacted conversation, as envelopes and ready to send. 404 says why there is none (yet).

    `format` gives it as one of those who go on with it needs it: the members of a Messages API request, of a chat
    completion, or the rows to append to a Claude Code log (JSON lines). docs/formats.md says what is lost in each.
    """
    async with services(request).database.begin() as conn:
        job = found(await jobs.get(conn, caller.tenant_id, job_id), NO_JOB)
        row = await results.get(conn, caller.tenant_id, job_id)
        if row is None:
            raise NotFound(why_no_result(job))
        place = None if query.format == "envelopes" else await surroundings.around(conn, row)
    media_type = LINES_TYPE if query.format == "claude_code" else JSON_TYPE
    return fresh_answer(request, await asyncio.to_thread(written, query.format, row, place), media_type=media_type)
