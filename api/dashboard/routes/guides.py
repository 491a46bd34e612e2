"""What an error code means and what to do: the runbooks, where people need them."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.dashboard import runbooks
from api.dashboard.pages import PageRoute, page
from api.dashboard.viewers import Looking
from api.found import found

router = APIRouter(route_class=PageRoute, include_in_schema=False)

NO_RUNBOOK = "There is no runbook of this name. /dashboard/help lists them."


@router.get("/dashboard/help")
async def contents(request: Request, viewer: Looking) -> Response:
    """All error codes, and the runbooks of alerts."""
    return page(request, "help.html", viewer, advice=runbooks.advice(), names=runbooks.names())


@router.get("/dashboard/help/{name}")
async def runbook(request: Request, viewer: Looking, name: str) -> Response:
    """One error code, or one runbook."""
    one = runbooks.advice().get(name)
    text = None if one else found(runbooks.runbook(name), NO_RUNBOOK)
    return page(request, "runbook.html", viewer, name=name, one=one, text=text)
