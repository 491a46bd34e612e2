"""One deed for all jobs of a filter: first a dry run that counts, then the confirmed step, then its result."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from api.dashboard import bulk_deeds
from api.dashboard.bulk_deeds import Action
from api.dashboard.job_choice import chosen
from api.dashboard.pages import PageRoute, page
from api.dashboard.routes.jobs import NO_TENANT
from api.dashboard.viewers import Acting, Looking, Sent
from api.found import found
from api.services import services
from compaction.errors import InvalidRequest
from compaction.store import audit, clock, reach

router = APIRouter(route_class=PageRoute, include_in_schema=False)

ADDRESS = "/dashboard/jobs/all"
ACTIONS: tuple[Action, ...] = ("retry", "cancel", "reset")


@router.get(ADDRESS)
async def dry_run(request: Request, viewer: Looking, action: Annotated[Action, Query()]) -> Response:
    """How many jobs the deed would change, and a few of them. Nothing is changed."""
    held = services(request)
    choice = chosen(request.query_params)
    async with held.database.connect() as conn:
        if choice.before is None:  # what fails while one reads this page is not part of it; by the database's clock
            choice = choice.model_copy(update={"before": await clock.read(conn)})
        within = found(await reach.narrowed(conn, viewer.reach, choice.tenant), NO_TENANT)
    counted = await bulk_deeds.dry_run(held, within, choice, action)
    sample = await bulk_deeds.sample(held, within, choice, action, bulk_deeds.SAMPLE)
    facts: dict[str, Any] = {
        "action": action,
        "choice": choice,
        "count": max(counted.jobs, len(sample)),
        "more": counted.at_least,
        "sample": sample,
        "sessions": counted.sessions,
        "step": bulk_deeds.STEP,
    }
    return page(request, "bulk_confirm.html", viewer, **facts)


@router.post(ADDRESS)
async def run(request: Request, viewer: Acting, fields: Sent) -> Response:
    """The confirmed step. The audit log has it before the first job is touched."""
    action = next((one for one in ACTIONS if one == fields.get("action")), None)
    if action is None or fields.get("confirm") != "yes":
        raise InvalidRequest("Nothing was changed: tick the box to confirm, then send the form again.")
    held = services(request)
    choice = chosen(fields)
    with_breakers = fields.get("breakers") == "1"
    async with held.database.connect() as conn:
        within = found(await reach.narrowed(conn, viewer.reach, choice.tenant), NO_TENANT)
        details = {"counted": fields.get("counted", ""), "with_breakers": with_breakers}
        entry = await audit.begin(
            conn, viewer.principal, f"jobs.{action}", choice.in_words, tenant_id=within.tenant_id, details=details
        )
    outcome = await bulk_deeds.step(held, within, choice, action, with_breakers=with_breakers)
    async with held.database.connect() as conn:
        await audit.end(
            conn, entry, outcome.done, {"refused": outcome.refused, "codes": outcome.codes, "problem": outcome.problem}
        )
    left = await bulk_deeds.dry_run(held, within, choice, action)
    facts: dict[str, Any] = {"action": action, "choice": choice, "outcome": outcome, "with_breakers": with_breakers}
    return page(request, "bulk_done.html", viewer, left=left.jobs, more=left.at_least, **facts)
