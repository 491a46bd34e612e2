"""The list of jobs, and one job's deeds: run again, cancel."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.dashboard import runbooks
from api.dashboard.job_choice import chosen
from api.dashboard.pages import PageRoute, moved, page
from api.dashboard.viewers import Acting, Looking
from api.found import NO_JOB, found
from api.retrying import again
from api.schemas.fields import JobPath
from api.services import services
from compaction.core.jobs import STATUSES, TRIGGERS
from compaction.errors import NotFound
from compaction.store import audit, job_search, jobs, reach

router = APIRouter(route_class=PageRoute, include_in_schema=False)

PAGE = 50
STRATEGIES = ("microcompact", "session_memory", "shared_prefix", "fresh", "extractive")
NO_TENANT = "There is no tenant of this name. Leave the field empty to see all that this key may see."


@router.get("/dashboard/jobs")
async def job_list(request: Request, viewer: Looking) -> Response:
    """Jobs, newest first, by the fields of the form."""
    choice = chosen(request.query_params)
    cursor = request.query_params.get("cursor") or None
    async with services(request).database.connect() as conn:
        within = found(await reach.narrowed(conn, viewer.reach, choice.tenant), NO_TENANT)
        listed = await job_search.search(conn, within, choice.filter(), limit=PAGE, cursor=cursor)
    facts: dict[str, Any] = {
        "choice": choice,
        "found": listed,
        "statuses": STATUSES,
        "triggers": TRIGGERS,
        "strategies": STRATEGIES,
        "codes": sorted(runbooks.advice()),
    }
    return page(request, "jobs.html", viewer, **facts)


@router.post("/dashboard/jobs/{job_id}/retry")
async def retry_job(request: Request, viewer: Acting, job_id: JobPath) -> Response:
    """Runs a job again, over the session as it is now."""
    held = services(request)
    async with held.database.begin() as conn:
        owner = found(await reach.owner_of_job(conn, viewer.reach, job_id), NO_JOB)
        old = found(await jobs.get(conn, owner.tenant_id, job_id), NO_JOB)
        entry = await audit.begin(conn, viewer.principal, "job.retry", job_id, tenant_id=owner.tenant_id)
        done = await again(conn, old, held.settings.caps)
        await audit.end(conn, entry, 1, {"new_job": done.job.id, "joined": not done.created})
    held.enqueued(done)
    return moved(f"/dashboard/jobs/{done.job.id}", note="retried")


@router.post("/dashboard/jobs/{job_id}/cancel")
async def cancel_job(request: Request, viewer: Acting, job_id: JobPath) -> Response:
    """Cancels a job that has not ended; a running one ends as soon as its worker hears of it."""
    async with services(request).database.begin() as conn:
        owner = found(await reach.owner_of_job(conn, viewer.reach, job_id), NO_JOB)
        before = found(await jobs.get(conn, owner.tenant_id, job_id), NO_JOB)
        entry = await audit.begin(conn, viewer.principal, "job.cancel", job_id, tenant_id=owner.tenant_id)
        row = await jobs.cancel(conn, owner.tenant_id, job_id)
        if row is None:
            raise NotFound(NO_JOB)
        await audit.end(conn, entry, 0 if before.done else 1, {"status": row.status})
    return moved(f"/dashboard/jobs/{job_id}", note="cancelled")
