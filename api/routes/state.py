"""A session's state: what the agent knows beside its messages, brought back after a compaction."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from api import bodies, openapi
from api.answers import json_answer
from api.auth import Reader, SessionWriter
from api.errors import Malformed
from api.found import NO_SESSION, found
from api.schemas.fields import SessionPath
from api.services import Services, services
from compaction.core import jsonbytes
from compaction.errors import InvalidRequest
from compaction.store import session_state, sessions

router = APIRouter(tags=["sessions"])

MAX_STATE_BYTES = 8 * 2**20  # one file, plan or skill; more would not come back into a window anyway
MAX_KEY_CHARS = 1024  # a long path
NO_STATE = "There is no state of this kind and key."

Kind = Literal[
    "files", "plans", "plan_mode", "skills", "memory", "tools", "agents", "mcp_instructions", "claude_md", "runtime"
]
Key = Annotated[str, Path(description="The entry's name within its kind; may hold slashes", max_length=MAX_KEY_CHARS)]

_ADDRESS = "/v1/sessions/{session_id}/state/{kind}/{key:path}"
_BODY = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": {}, "example": {"content": "…"}}}}
}
_SHOWN: openapi.Extra = {"content": {"application/json": {"schema": {}, "example": {"content": "…"}}}}
_DONE: dict[int | str, openapi.Extra] = {204: {"description": "Done"}}


@router.put(
    _ADDRESS,
    status_code=204,
    summary="Store an entry",
    openapi_extra=_BODY,
    responses={**_DONE, **openapi.refuses(400, 404, 413, 415)},
)
async def put_state(request: Request, caller: SessionWriter, session_id: SessionPath, kind: Kind, key: Key) -> Response:
    """Store one entry, any JSON, in place of an earlier one of the same kind and key."""
    held = services(request)
    body = await bodies.read(request, MAX_STATE_BYTES)
    await bodies.think(len(body), _check, body)
    async with held.database.begin() as conn:
        session = found(await sessions.get(conn, caller.tenant_id, session_id), NO_SESSION)
        await session_state.put(conn, session.id, kind, _storable(key), body)
    return Response(status_code=204)


@router.get(
    _ADDRESS,
    summary="Read an entry",
    responses={200: {"description": "The entry as it was stored", **_SHOWN}, **openapi.refuses(404)},
)
async def get_state(request: Request, caller: Reader, session_id: SessionPath, kind: Kind, key: Key) -> Response:
    """The entry's JSON, exactly as it was stored."""
    async with services(request).database.begin() as conn:
        session = found(await sessions.get(conn, caller.tenant_id, session_id), NO_SESSION)
        body = found(await session_state.get(conn, session.id, kind, _storable(key)), NO_STATE)
    return json_answer(body)


@router.delete(_ADDRESS, status_code=204, summary="Remove an entry", responses={**_DONE, **openapi.refuses(404)})
async def remove_state(
    request: Request, caller: SessionWriter, session_id: SessionPath, kind: Kind, key: Key
) -> Response:
    """Remove one entry."""
    held: Services = services(request)
    async with held.database.begin() as conn:
        session = found(await sessions.get(conn, caller.tenant_id, session_id), NO_SESSION)
        removed = await session_state.remove(conn, session.id, kind, _storable(key))
        found(removed or None, NO_STATE)
    return Response(status_code=204)


def _storable(key: str) -> str:
    if not key or "\0" in key:
        raise InvalidRequest("The key must be a name without NUL characters.", fields=(("key", "is not usable"),))
    return key


def _check(body: bytes) -> None:
    try:
        jsonbytes.decode(body)
    except ValueError as error:
        raise Malformed(f"The body is not JSON: {error}.") from None
