"""The overview: what waits and runs, how jobs ended in the last day, what was saved and spent."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.dashboard import summing
from api.dashboard.pages import PageRoute, page
from api.dashboard.viewers import Looking
from api.services import services
from compaction.core.jobs import SELF_FENCE_SECONDS
from compaction.store import pauses, standstills, tallies, vitals, workers

router = APIRouter(route_class=PageRoute, include_in_schema=False)

HOURS = 24


@router.get("/dashboard")
async def overview(request: Request, viewer: Looking) -> Response:
    """The page people keep open; it renews itself."""
    async with services(request).database.connect() as conn:
        now = await vitals.vitals(conn, viewer.reach)
        lately = await tallies.lately(conn, viewer.reach, HOURS)
        still = await standstills.standstill(conn, SELF_FENCE_SECONDS)
        providers = await pauses.list_pauses(conn) if viewer.sees_all else []
        known = await workers.list_workers(conn) if viewer.sees_all else []
    living = [one for one in known if one.silent_seconds <= SELF_FENCE_SECONDS]
    facts: dict[str, Any] = {
        "state": now,
        "sums": summing.summed(lately.tallies),
        "points": summing.points(lately.tallies, lately.now, HOURS),
        "lately": lately,
        "standstill": still,
        "providers": providers,
        "workers": living,
        "slots": sum(one.slots for one in living),
    }
    return page(request, "overview.html", viewer, **facts)
