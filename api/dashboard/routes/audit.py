"""The audit log: who did what by these pages, newest first."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.dashboard.pages import PageRoute, page
from api.dashboard.viewers import Looking
from api.services import services
from compaction.store import audit

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/dashboard/audit")
async def audit_log(request: Request, viewer: Looking) -> Response:
    """A page of the log."""
    cursor = request.query_params.get("cursor") or None
    async with services(request).database.connect() as conn:
        entries, following = await audit.list_entries(conn, viewer.reach, cursor=cursor)
    return page(request, "audit.html", viewer, entries=entries, cursor=following)
