"""Signing in with an API key, and out again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from api.auth import MAX_KEY_CHARS
from api.dashboard import visits
from api.dashboard.pages import PageRoute, moved, page
from api.dashboard.viewers import Form, Sent, check_use, form
from api.dashboard.visits import Visit
from api.services import services
from compaction import telemetry
from compaction.errors import Forbidden
from compaction.store import audit, tenants

router = APIRouter(route_class=PageRoute, include_in_schema=False)

START = "/dashboard"
_log = telemetry.logger("dashboard")


@router.get("/dashboard/sign-in")
async def sign_in_form(request: Request) -> Response:
    """The form that asks for a key."""
    return _form(request, request.query_params.get("next", START))


@router.post("/dashboard/sign-in")
async def sign_in(request: Request, fields: Annotated[Form, Depends(form)]) -> Response:
    """Begins a visit. The key is checked as the API checks it, and kept nowhere."""
    held = services(request)
    goes_on = fields.get("next", START)
    token = visits.form_token(held.settings, request)
    if token is None or not visits.same(token, fields.get("csrf", "")):
        return _form(request, goes_on, "The form was open for too long, or cookies are off. Try again.", 403)
    key = fields.get("key", "").strip()
    usable = 0 < len(key) <= MAX_KEY_CHARS and key.isascii() and key.isprintable()
    async with held.database.begin() as conn:
        caller = await tenants.authenticate(conn, key, held.settings.key_pepper) if usable else None
        known = None if caller is None else await tenants.recall(conn, caller.public_id)
        if known is None:
            _log.warning("dashboard.refused")
            return _form(request, goes_on, "No valid key: it is mistyped, expired or revoked.", 401)
        try:
            check_use(known.principal)
        except Forbidden as error:
            return _form(request, goes_on, error.message, 403)
        looks_only = fields.get("look") == "1" or "ops" not in known.principal.scopes
        details = {"role": "viewer" if looks_only else "operator"}
        entry = await audit.begin(
            conn, known.principal, "sign_in", tenant_id=known.principal.tenant_id, details=details
        )
        await audit.end(conn, entry, 0)
    response = moved(_own(goes_on))
    visit = Visit(known.principal.public_id, known.print, looks_only, visits.new_token())
    visits.begin(held.settings, request, response, visit)
    return response


@router.post("/dashboard/sign-out")
async def sign_out(request: Request, _fields: Sent) -> Response:
    """Ends the visit."""
    response = moved("/dashboard/sign-in")
    visits.end(request, response)
    return response


def _form(request: Request, goes_on: str, problem: str | None = None, status: int = 200) -> Response:
    token = visits.new_token()
    response = page(request, "sign_in.html", None, status, token=token, next=_own(goes_on), problem=problem)
    visits.open_form(services(request).settings, request, response, token)
    return response


def _own(address: str) -> str:
    """The address, if it is one of ours: nobody is led elsewhere by a link to the sign-in."""
    plain = address.isprintable() and "\\" not in address and "//" not in address
    return address if plain and (address == START or address.startswith(("/dashboard/", "/dashboard?"))) else START
