"""Who looks at a page, what this person sees, and what they may do. Every page depends on a `Viewer` from here.

A key of scope `ops` is an operator's; one of scope `read` looks and changes nothing. Words of sessions are shown to
keys of scope `read`. A key sees its tenant only; an `ops` key of the tenant that runs the service sees all tenants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from api.bodies import stream
from api.dashboard import visits
from api.errors import Malformed, UnsupportedMediaType
from api.services import services
from compaction.errors import Forbidden, Unauthorized
from compaction.store import tenants
from compaction.store.reach import Reach
from compaction.store.tenants import OPERATOR_TENANT, Principal

MAX_FORM_BYTES = 64 * 1024  # the largest form is a filter
MAX_FIELDS = 50
FORM_TYPE = "application/x-www-form-urlencoded"
OWN_SITE = {"same-origin", "none"}  # of Sec-Fetch-Site; "none" is the address bar


class SignInNeeded(Unauthorized):
    """Sign in first."""


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person who signed in; `csrf` stands in every form that they are given."""

    principal: Principal
    looks_only: bool
    csrf: str

    @property
    def may_act(self) -> bool:
        """Whether they may change anything."""
        return "ops" in self.principal.scopes and not self.looks_only

    @property
    def sees_all(self) -> bool:
        """Whether they see every tenant, the workers and the providers."""
        return self.principal.is_operator and "ops" in self.principal.scopes

    @property
    def reads_words(self) -> bool:
        """Whether they may read what sessions say."""
        return "read" in self.principal.scopes

    @property
    def reach(self) -> Reach:
        """Whose rows they see."""
        return Reach(None if self.sees_all else self.principal.tenant_id)


Form = dict[str, str]


async def looking(request: Request) -> Viewer:
    """The viewer of this request. Raises SignInNeeded, Forbidden for a key without use here, or TooManyRequests."""
    held = services(request)
    visit = visits.read(held.settings, request)
    if visit is None:
        raise SignInNeeded
    async with held.database.connect() as conn:
        known = await tenants.recall(conn, visit.public_id)
    if known is None or not visits.same(known.print, visit.print):
        raise SignInNeeded
    request.scope["state"]["key_id"] = visit.public_id
    if held.key_limit is not None:
        await held.key_limit.check(request.scope, visit.public_id)
    check_use(known.principal)
    return Viewer(known.principal, visit.looks_only, visit.csrf)


def check_use(principal: Principal) -> None:
    """Raises Forbidden for a key that has no use for these pages."""
    if principal.scopes.isdisjoint({"ops", "read"}):
        raise Forbidden("This key lacks the scopes ops and read: with ops one acts, with read one looks.")


async def overseeing(viewer: Annotated[Viewer, Depends(looking)]) -> Viewer:
    """A viewer who sees all tenants. Raises Forbidden."""
    if not viewer.sees_all:
        raise Forbidden(f"This page is about all tenants: for ops keys of the tenant {OPERATOR_TENANT} alone.")
    return viewer


async def form(request: Request) -> Form:
    """The fields of a form of ours. Raises UnsupportedMediaType, TooLarge, Malformed, and Forbidden from elsewhere."""
    if request.headers.get("sec-fetch-site", "none") not in OWN_SITE:
        raise Forbidden("This form was sent from another site. Open the page here and send it again.")
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != FORM_TYPE:
        raise UnsupportedMediaType("Send the form as a browser does.")
    body = bytearray()
    async for piece in stream(request, MAX_FORM_BYTES):
        body += piece
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"))
    except ValueError:
        raise Malformed("The form cannot be read. Open the page again and send it once more.") from None


async def sent(viewer: Annotated[Viewer, Depends(looking)], fields: Annotated[Form, Depends(form)]) -> Form:
    """The fields of a form that this visit was given. Raises Forbidden without the visit's token."""
    if not visits.same(fields.pop("csrf", ""), viewer.csrf):
        raise Forbidden("This form is not of this visit. Reload the page and send it again.")
    return fields


async def acting(viewer: Annotated[Viewer, Depends(looking)], _fields: Annotated[Form, Depends(sent)]) -> Viewer:
    """A viewer who may change things and sent a form of this visit. Raises Forbidden."""
    if not viewer.may_act:
        raise Forbidden("This visit is read-only. Sign in with a key of the scope ops, without “look only”.")
    return viewer


Looking = Annotated[Viewer, Depends(looking)]
Overseeing = Annotated[Viewer, Depends(overseeing)]
Acting = Annotated[Viewer, Depends(acting)]
Sent = Annotated[Form, Depends(sent)]
