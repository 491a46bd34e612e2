"""Taking a result over."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from api import applying, bodies, openapi
from api.answers import json_answer
from api.auth import JobWriter
from api.schemas.applying import APPLY, Applied, ApplyRequest, StaleProblem
from api.schemas.fields import JobPath
from api.services import services

router = APIRouter(tags=["compactions"])


@router.post(
    "/v1/compactions/{job_id}/apply",
    summary="Take a result over",
    openapi_extra=openapi.takes(ApplyRequest, APPLY),
    responses={
        200: openapi.gives(Applied, "Recorded, now or before; go on with api_messages"),
        **openapi.refuses(400, 404, 413, 415),
        409: openapi.problem_of(StaleProblem, "The producer's history is not what the result replaces"),
    },
)
async def apply(request: Request, caller: JobWriter, job_id: JobPath) -> Response:
    """Confirm that the producer swaps its copy of the history for the result.

    `prefix_hash` names what the producer is about to replace. When it is what the result stands for, the swap is
    recorded and the messages that were appended meanwhile come back. Otherwise the answer is 409 `stale` and nothing
    changes. Asking again is safe and gives the newest tail.
    """
    held = services(request)
    wanted = await bodies.parse(await bodies.read(request, held.settings.max_body_bytes), ApplyRequest)
    document = await applying.applied(held, caller.tenant_id, job_id, wanted)
    return json_answer(document, headers={"Cache-Control": "no-store"})
