"""Bulk runs of the viewer's own tenant: how far they have come, and the report of each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from api import bulk_gathering
from api.dashboard.pages import PageRoute, page
from api.dashboard.viewers import Looking
from api.found import found
from api.schemas.bulk import BulkRun
from api.services import services
from compaction.store import bulk_runs, bulk_totals

router = APIRouter(route_class=PageRoute, include_in_schema=False)

NO_RUN = "There is no bulk run of this id here. The page “Bulk runs” lists those of your tenant."
RunPath = Annotated[str, Path(max_length=100)]


@router.get("/dashboard/bulk")
async def runs_page(request: Request, viewer: Looking) -> Response:
    """The runs, newest first."""
    cursor = request.query_params.get("cursor") or None
    async with services(request).database.connect() as conn:
        rows, following = await bulk_runs.list_runs(conn, viewer.principal.tenant_id, cursor=cursor)
        sums = await bulk_totals.totals(conn, [row.id for row in rows])
    return page(
        request, "bulk_runs.html", viewer, runs=[BulkRun.of(row, sums[row.id]) for row in rows], cursor=following
    )


@router.get("/dashboard/bulk/{run_id}")
async def run_page(request: Request, viewer: Looking, run_id: RunPath) -> Response:
    """One run with its report."""
    held = services(request)
    async with held.database.connect() as conn:
        row = found(await bulk_runs.get(conn, viewer.principal.tenant_id, run_id), NO_RUN)
        sums = await bulk_totals.totals(conn, [row.id])
    report = await bulk_gathering.report(held, row)
    return page(
        request,
        "bulk_run.html",
        viewer,
        run=BulkRun.of(row, sums[row.id]),
        report=report,
        tenant=viewer.principal.tenant,
    )
