"""What fills a session's window: the token analysis."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request
from starlette.responses import Response

from api import bodies, openapi
from api.answers import fresh_answer
from api.auth import Reader
from api.found import NO_SESSION, found
from api.live import live_messages, size_bytes
from api.schemas.context import Context
from api.schemas.fields import SessionPath
from api.services import services
from compaction.core import jsonbytes
from compaction.core.analysis import analyse
from compaction.core.tool_table import tool_table
from compaction.limits import session_limits
from compaction.store import sessions
from compaction.store.sessions import LiveView, SessionRow

router = APIRouter(tags=["sessions"])


@router.get(
    "/v1/sessions/{session_id}/context",
    summary="What fills a session's window",
    responses={200: openapi.gives(Context, "The analysis"), 304: openapi.UNCHANGED, **openapi.refuses(404, 413)},
)
async def get_context(request: Request, caller: Reader, session_id: SessionPath) -> Response:
    """Tokens of the live view by kind, role and tool, files that were read again, and the share of the window."""
    held = services(request)
    async with held.database.begin() as conn:
        row = found(await sessions.get(conn, caller.tenant_id, session_id), NO_SESSION)
        live = await sessions.load_live(conn, row.id)
        parameters = await sessions.load_parameters(conn, row.id)
    size = size_bytes(live) + sum(map(len, parameters.values()))
    return fresh_answer(request, await bodies.think(size, _context, row, live, parameters))


def _context(row: SessionRow, live: LiveView, parameters: Mapping[str, bytes]) -> Context:
    values = {name: jsonbytes.decode(raw) for name, raw in parameters.items()}
    analysis = analyse(
        live_messages(live),
        system=values.get("system"),
        tools=values.get("tools"),
        window=session_limits(row.model, row.settings).context_window_tokens,
        table=tool_table(row.settings),
    )
    return Context(session_id=row.name, **analysis.to_dict())
