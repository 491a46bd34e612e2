"""Failed jobs by their cause: what went wrong, how often, what to do, and the way to all of them at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from api.dashboard import runbooks
from api.dashboard.pages import PageRoute, page
from api.dashboard.routes.jobs import NO_TENANT
from api.dashboard.viewers import Looking
from api.found import found
from api.services import services
from compaction.store import job_causes, reach

router = APIRouter(route_class=PageRoute, include_in_schema=False)

WINDOWS_HOURS = {"1h": 1, "24h": 24, "7d": 168, "30d": 720}
Window = Literal["1h", "24h", "7d", "30d"]


@router.get("/dashboard/failures")
async def failures(
    request: Request, viewer: Looking, window: Annotated[Window, Query()] = "24h", tenant: Annotated[str, Query()] = ""
) -> Response:
    """The causes, the one with most open failures first."""
    since = datetime.now(UTC) - timedelta(hours=WINDOWS_HOURS[window])
    async with services(request).database.connect() as conn:
        within = found(await reach.narrowed(conn, viewer.reach, tenant.strip()), NO_TENANT)
        grouped = await job_causes.causes(conn, within, since)
    facts: dict[str, Any] = {
        "windows": list(WINDOWS_HOURS),
        "window": window,
        "tenant": tenant,
        "since": since,
        "grouped": grouped,
    }
    return page(request, "failures.html", viewer, advice=runbooks.advice(), **facts)
