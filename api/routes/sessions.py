"""Sessions: create or change one, see how it stands, erase it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from api import bodies, openapi
from api.answers import fresh_answer, json_answer
from api.auth import Eraser, Reader, SessionWriter
from api.found import NO_SESSION, found
from api.intake import decoded, object_fields
from api.schemas.fields import SessionPath
from api.schemas.sessions import Erased, EraseQuery, Session, SessionRequest, StoredSession
from api.services import services
from api.session_view import session_view
from compaction import telemetry
from compaction.errors import InvalidRequest
from compaction.store import breakers, erasing, sessions

router = APIRouter(tags=["sessions"])
_log = telemetry.logger("api")

_NEXT = openapi.leads_to(
    "session_id", "id", "get_session", "append_messages", "get_messages", "get_context", "get_breaker", "put_state"
)

PARAMETERS = ("system", "tools", "request")  # kept as the bytes they came as
_EXAMPLE = {
    "model": "claude-sonnet-5-5",
    "system": "You are a careful engineer.",
    "settings": {"auto_compact_enabled": True},
    "query_source": "main",
}


@router.put(
    "/v1/sessions/{session_id}",
    summary="Create or change a session",
    openapi_extra=openapi.takes(SessionRequest, _EXAMPLE),
    responses={
        200: openapi.gives(StoredSession, "Changed") | _NEXT,
        201: openapi.gives(StoredSession, "Created") | _NEXT,
        **openapi.refuses(400, 409, 413, 415),
    },
)
async def put_session(request: Request, caller: SessionWriter, session_id: SessionPath) -> Response:
    """Create a session, or change the fields that are given; absent fields keep their values, null takes one away."""
    held = services(request)
    body = await bodies.read(request, held.settings.max_parameter_bytes)
    wanted, raws = await bodies.think(len(body), _decoded, body)
    taken_away = {name for name in wanted.model_fields_set if getattr(wanted, name) is None}
    async with held.database.begin() as conn:
        before = await sessions.get(conn, caller.tenant_id, session_id)
        if before is None and wanted.model is None:
            raise InvalidRequest("A new session needs a model.", fields=(("model", "is missing"),))
        row = await sessions.put(
            conn,
            caller.tenant_id,
            session_id,
            model=wanted.model,
            parameters=raws,
            settings={} if "settings" in taken_away else wanted.settings,
            query_source="" if "query_source" in taken_away else wanted.query_source,
        )
    return json_answer(StoredSession.of(row), 201 if before is None else 200)


@router.get(
    "/v1/sessions/{session_id}",
    summary="How a session stands",
    responses={200: openapi.gives(Session, "The session"), 304: openapi.UNCHANGED, **openapi.refuses(404, 413)},
)
async def get_session(request: Request, caller: Reader, session_id: SessionPath) -> Response:
    """The session with its size against the window's marks, and its circuit breaker."""
    held = services(request)
    async with held.database.begin() as conn:
        row = found(await sessions.get(conn, caller.tenant_id, session_id), NO_SESSION)
        live = await sessions.load_live(conn, row.id)
        parameters = await sessions.load_parameters(conn, row.id)
        breaker = await breakers.get(conn, row.id)
    view = await session_view(row, live, parameters, breaker, held.settings)
    return fresh_answer(request, view)


@router.delete(
    "/v1/sessions/{session_id}",
    summary="Erase a session",
    responses={200: openapi.gives(Erased, "Nothing of it is left"), **openapi.refuses(404, 409)},
)
async def erase_session(
    request: Request, caller: Eraser, session_id: SessionPath, query: Annotated[EraseQuery, Query()]
) -> Response:
    """Delete the session with its messages, state, jobs, events, results, webhook deliveries and kept answers.

    Refused while jobs of it have not ended, unless `cancel_jobs=true`: then they end without a result, and a worker
    that has one writes nothing any more. This cannot be taken back, and backups keep what they have.
    """
    async with services(request).database.begin() as conn:
        done = await erasing.erase(conn, caller.tenant_id, session_id, cancel_jobs=query.cancel_jobs)
    erased = Erased.of(session_id, found(done, NO_SESSION))
    _log.warning("session.erased", key=caller.public_id, **erased.model_dump())
    return json_answer(erased)


def _decoded(body: bytes) -> tuple[SessionRequest, dict[str, bytes]]:
    raws = object_fields(body)
    wanted = bodies.shaped(SessionRequest, decoded(raws))
    return wanted, {name: raws[name] for name in PARAMETERS if name in raws}
