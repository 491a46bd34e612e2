"""Who asks: the key in the Authorization header, its tenant and its scopes. Every query of a route uses this tenant."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from api.services import services
from compaction.errors import Forbidden, Unauthorized
from compaction.store import tenants
from compaction.store.tenants import OPERATOR_TENANT, Principal

MAX_KEY_CHARS = 200  # ours have 55; a longer header is no key and not worth a query

_bearer = HTTPBearer(auto_error=False, scheme_name="key", description="`Authorization: Bearer ck_…`")


class Requires:
    """A dependency: the caller's key is valid and has one of `scopes`.

    Raises Unauthorized, Forbidden, or TooManyRequests when the key asks more often than it may.

    With `operator` the key must also be of the tenant that runs the service: the call is about all tenants.
    """

    def __init__(self, *scopes: str, operator: bool = False) -> None:
        self.scopes = scopes
        self.operator = operator

    async def __call__(
        self, request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
    ) -> Principal:
        """The caller."""
        key = credentials.credentials if credentials else ""
        if not 0 < len(key) <= MAX_KEY_CHARS or not (key.isascii() and key.isprintable()):
            raise Unauthorized
        held = services(request)
        async with held.database.connect() as conn:
            principal = await tenants.authenticate(conn, key, held.settings.key_pepper)
        if principal is None:
            raise Unauthorized
        request.scope["state"]["key_id"] = principal.public_id
        if held.key_limit is not None:
            await held.key_limit.check(request.scope, principal.public_id)
        if principal.scopes.isdisjoint(self.scopes):
            needed = " or ".join(self.scopes)
            raise Forbidden(f"The key lacks the scope {needed} for this call. Ask an admin for a key that has it.")
        if self.operator and not principal.is_operator:
            raise Forbidden(f"This call is for the service's operator alone: for keys of the tenant {OPERATOR_TENANT}.")
        return principal


Reader = Annotated[Principal, Depends(Requires("read"))]
SessionWriter = Annotated[Principal, Depends(Requires("sessions:write"))]
JobWriter = Annotated[Principal, Depends(Requires("jobs:write"))]
Operator = Annotated[Principal, Depends(Requires("ops"))]
Admin = Annotated[Principal, Depends(Requires("admin"))]
ProviderKeeper = Annotated[Principal, Depends(Requires("ops", operator=True))]
HookKeeper = Annotated[Principal, Depends(Requires("admin", "ops"))]
Eraser = Annotated[Principal, Depends(Requires("admin", "ops"))]
