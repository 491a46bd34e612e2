"""A session's results as versions: list them, choose the current one, go back to an earlier one or to none."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from api import bodies, openapi
from api.answers import json_answer
from api.auth import JobWriter, Reader
from api.found import NO_SESSION, found
from api.schemas.examples import JOB_ID
from api.schemas.fields import SessionPath
from api.schemas.versions import SessionVersion, SessionVersions, VersionChoice
from api.services import services
from compaction.store import sessions, versions
from compaction.store.engine import Connection

router = APIRouter(tags=["sessions"])

MAX_BODY_BYTES = 4 * 1024  # one id


@router.get(
    "/v1/sessions/{session_id}/versions",
    summary="The results of a session",
    responses={200: openapi.gives(SessionVersions, "Newest first"), **openapi.refuses(404)},
)
async def list_versions(request: Request, caller: Reader, session_id: SessionPath) -> Response:
    """Every result that is kept, by model, strategy and prompt version, and which one is current."""
    async with services(request).database.connect() as conn:
        document = await _document(conn, caller.tenant_id, session_id)
    return json_answer(document)


@router.put(
    "/v1/sessions/{session_id}/versions",
    summary="Choose the current result of a session",
    openapi_extra=openapi.takes(VersionChoice, {"job_id": JOB_ID}),
    responses={
        200: openapi.gives(SessionVersions, "The live view begins with it now"),
        **openapi.refuses(400, 404, 409, 413, 415),
    },
)
async def choose_version(request: Request, caller: JobWriter, session_id: SessionPath) -> Response:
    """Have the live view begin with another result, or with `null` be as the producer stored it. Nothing is deleted."""
    body = await bodies.read(request, MAX_BODY_BYTES)
    wanted = await bodies.parse(body, VersionChoice)
    async with services(request).database.begin() as conn:
        session = found(await sessions.get(conn, caller.tenant_id, session_id), NO_SESSION)
        await versions.choose(conn, session, wanted.job_id)
        document = await _document(conn, caller.tenant_id, session_id)
    return json_answer(document)


async def _document(conn: Connection, tenant_id: int, session_id: str) -> SessionVersions:
    session = found(await sessions.get(conn, tenant_id, session_id), NO_SESSION)
    kept = await versions.list_versions(conn, session)
    data = [SessionVersion.of(version, session.live_job_id) for version in kept]
    return SessionVersions(session_id=session_id, current=session.live_job_id, data=data)
