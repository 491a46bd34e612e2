"""Every other address of the dashboard: a page that says where to go instead of a problem document."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from api.dashboard.pages import PageRoute, moved
from api.dashboard.viewers import Looking
from compaction.errors import NotFound

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/dashboard/")
async def slash() -> Response:
    """The overview has no slash at its end."""
    return moved("/dashboard")


@router.get("/dashboard/{path:path}")
async def lost(_viewer: Looking, path: str) -> Response:
    """There is nothing here."""
    del path
    raise NotFound("There is no such page. The menu leads to all of them.")
