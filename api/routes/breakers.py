"""Circuit breakers: one session's, the open ones, and the operator's reset."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from api import openapi
from api.answers import json_answer, page
from api.auth import Operator, Reader
from api.found import NO_SESSION, found
from api.schemas.breakers import Breaker, BreakerPage, BreakerQuery
from api.schemas.fields import SessionPath
from api.services import services
from compaction.store import breakers, sessions

router = APIRouter(tags=["breakers"])


@router.get(
    "/v1/sessions/{session_id}/breaker",
    summary="A session's circuit breaker",
    responses={200: openapi.gives(Breaker, "The breaker"), **openapi.refuses(404)},
)
async def get_breaker(request: Request, caller: Reader, session_id: SessionPath) -> Response:
    """Closed, open or half open, and what opened it."""
    held = services(request)
    async with held.database.begin() as conn:
        session = found(await sessions.get(conn, caller.tenant_id, session_id), NO_SESSION)
        row = await breakers.get(conn, session.id)
    return json_answer(Breaker.of(session_id, row, held.settings.breaker_cooldown_seconds))


@router.post(
    "/v1/sessions/{session_id}/breaker/reset",
    summary="Close a session's circuit breaker",
    responses={200: openapi.gives(Breaker, "Closed"), **openapi.refuses(404)},
)
async def reset_breaker(request: Request, caller: Operator, session_id: SessionPath) -> Response:
    """Let automatic compactions of the session run again."""
    held = services(request)
    async with held.database.begin() as conn:
        session = found(await sessions.get(conn, caller.tenant_id, session_id), NO_SESSION)
        row = await breakers.reset(conn, session.id)
    return json_answer(Breaker.of(session_id, row, held.settings.breaker_cooldown_seconds))


@router.get(
    "/v1/breakers",
    summary="Open circuit breakers",
    responses={200: openapi.gives(BreakerPage, "Breakers, the oldest sessions first"), **openapi.refuses()},
)
async def list_breakers(request: Request, caller: Reader, query: Annotated[BreakerQuery, Query()]) -> Response:
    """The open breakers of the key's tenant."""
    held = services(request)
    async with held.database.begin() as conn:
        rows, following = await breakers.list_open(conn, caller.tenant_id, limit=query.limit, cursor=query.cursor)
    cooldown_seconds = held.settings.breaker_cooldown_seconds
    return page([Breaker.of(row.session_name, row.breaker, cooldown_seconds) for row in rows], following)
