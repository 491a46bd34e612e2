"""One job: what happened to it, what it cost, what it made, and what to do when it failed."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.dashboard import job_view, reading, runbooks
from api.dashboard.pages import PageRoute, page
from api.dashboard.viewers import Looking
from api.found import NO_JOB, found
from api.schemas.fields import JobPath
from api.services import services
from compaction.store import breakers, jobs, leases_view, reach, results

router = APIRouter(route_class=PageRoute, include_in_schema=False)

MAX_EVENTS = 1000  # of one job; eight model calls and five attempts make a few dozen


@router.get("/dashboard/jobs/{job_id}")
async def job_page(request: Request, viewer: Looking, job_id: JobPath) -> Response:
    """The job with its timeline."""
    held = services(request)
    async with held.database.connect() as conn:
        owner = found(await reach.owner_of_job(conn, viewer.reach, job_id), NO_JOB)
        row = found(await jobs.get(conn, owner.tenant_id, job_id), NO_JOB)
        attempts = await jobs.list_attempts(conn, row.id)
        events = await jobs.events(conn, row.id, limit=MAX_EVENTS)
        lease = await leases_view.of_job(conn, owner.tenant_id, row.id)
        breaker = await breakers.get(conn, row.session_id)
        result = await results.get(conn, owner.tenant_id, row.id)
        if result is not None or row.instructions:
            await reading.noted(conn, viewer, owner, f"job {row.id}")
    code = str((row.error or {}).get("code", "")) if row.status != "succeeded" else ""
    facts: dict[str, Any] = {
        "job": row,
        "owner": owner,
        "attempts": attempts,
        "entries": job_view.timeline(row, attempts, events),
        "calls": job_view.calls(events),
        "lease": lease,
        "breaker": breaker,
        "result": None if result is None else job_view.ResultView.of(result),
        "advice": runbooks.advice().get(code),
        "progress": await held.standstills.progress(row),
        "note": request.query_params.get("note"),
    }
    return page(request, "job.html", viewer, **facts)
