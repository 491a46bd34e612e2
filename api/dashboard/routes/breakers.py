"""Open breakers: whose automatic compactions are stopped and why; reset by one click, or all of a cause."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.dashboard import runbooks
from api.dashboard.pages import PageRoute, moved, page
from api.dashboard.viewers import Acting, Looking, Sent
from api.found import NO_SESSION, found
from api.services import services
from compaction.errors import InvalidRequest
from compaction.store import audit, breakers, reach, session_search, sessions

router = APIRouter(route_class=PageRoute, include_in_schema=False)

PAGE = 50
STEP = 500  # breakers that one click closes; the page offers to go on
COUNTED = 10_000


@router.get("/dashboard/breakers")
async def breaker_list(request: Request, viewer: Looking) -> Response:
    """The open ones."""
    code = request.query_params.get("code") or None
    cursor = request.query_params.get("cursor") or None
    async with services(request).database.connect() as conn:
        listed, following = await session_search.list_breakers(conn, viewer.reach, code=code, limit=PAGE, cursor=cursor)
        count = await session_search.count_breakers(conn, viewer.reach, COUNTED, code=code)
    facts: dict[str, Any] = {
        "listed": listed,
        "cursor": following,
        "count": count,
        "counted": COUNTED,
        "code": code,
        "step": STEP,
    }
    note = request.query_params.get("note")
    return page(request, "breakers.html", viewer, advice=runbooks.advice(), note=note, **facts)


@router.post("/dashboard/breakers/reset")
async def reset_breaker(request: Request, viewer: Acting, fields: Sent) -> Response:
    """Lets the automatic compactions of one session run again."""
    tenant, name = fields.get("tenant", ""), fields.get("session", "")
    async with services(request).database.begin() as conn:
        owner = found(await reach.owner_of_session(conn, viewer.reach, tenant, name), NO_SESSION)
        session = found(await sessions.get(conn, owner.tenant_id, name), NO_SESSION)
        entry = await audit.begin(conn, viewer.principal, "breaker.reset", name, tenant_id=owner.tenant_id)
        was = await breakers.get(conn, session.id)
        await breakers.reset(conn, session.id)
        await audit.end(conn, entry, int(was.opened_at is not None), {"last_error_code": was.last_error_code})
    if fields.get("from") == "session":
        return moved("/dashboard/session", tenant=tenant, name=name, note="reset")
    return moved("/dashboard/breakers", note="reset", code=fields.get("code"))


@router.post("/dashboard/breakers/reset-all")
async def reset_all(request: Request, viewer: Acting, fields: Sent) -> Response:
    """Closes the open breakers within reach, or those of one cause, STEP at a time."""
    if fields.get("confirm") != "yes":
        raise InvalidRequest("Nothing was changed: tick the box to confirm, then send the form again.")
    code = fields.get("code") or None
    held = services(request)
    async with held.database.connect() as conn:
        target = f"code={code}" if code else "all open breakers"
        entry = await audit.begin(conn, viewer.principal, "breakers.reset", target, tenant_id=viewer.reach.tenant_id)
        listed, _ = await session_search.list_breakers(conn, viewer.reach, code=code, limit=STEP)
        for one in listed:
            await breakers.reset(conn, one.session_id)
        await audit.end(conn, entry, len(listed))
    return moved("/dashboard/breakers", note="reset", code=code)
