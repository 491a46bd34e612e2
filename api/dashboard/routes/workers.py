"""Workers and providers: who is alive, how busy, which leases they hold, and whose calls are paused."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.dashboard import runbooks
from api.dashboard.pages import PageRoute, moved, page
from api.dashboard.viewers import Acting, Overseeing
from api.routes.providers import ProviderPath
from api.services import services
from compaction.core.jobs import SELF_FENCE_SECONDS
from compaction.store import audit, leases_view, pauses, workers

router = APIRouter(route_class=PageRoute, include_in_schema=False)

LEASES = 100  # shown, those that were taken first
LAG_SECONDS = 5.0  # from here on a loop is late, as for the alert LoopLag


@router.get("/dashboard/workers")
async def worker_list(request: Request, viewer: Overseeing) -> Response:
    """Every process that is known, and every provider that was ever paused."""
    async with services(request).database.connect() as conn:
        known = await workers.list_workers(conn)
        leases = await leases_view.oldest(conn, LEASES)
        providers = await pauses.list_pauses(conn)
    facts: dict[str, Any] = {
        "workers": known,
        "leases": leases,
        "providers": providers,
        "silent_seconds": SELF_FENCE_SECONDS,
    }
    note = request.query_params.get("note")
    return page(request, "workers.html", viewer, late_seconds=LAG_SECONDS, advice=runbooks.advice(), note=note, **facts)


@router.post("/dashboard/providers/{name}/resume")
async def resume(request: Request, viewer: Acting, _all: Overseeing, name: ProviderPath) -> Response:
    """Lets jobs call the provider again at once."""
    async with services(request).database.begin() as conn:
        entry = await audit.begin(conn, viewer.principal, "provider.resume", name, tenant_id=None)
        await audit.end(conn, entry, int(await pauses.resume(conn, name)))
    return moved("/dashboard/workers", note="resumed")
