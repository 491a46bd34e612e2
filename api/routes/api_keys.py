"""API keys."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from api import bodies, openapi
from api.answers import json_answer
from api.auth import Admin
from api.schemas.api_keys import ApiKey, ApiKeyRequest
from api.services import services
from compaction.errors import Forbidden
from compaction.store import tenants
from compaction.store.tenants import OPERATOR_TENANT, Principal

router = APIRouter(tags=["api keys"])

MAX_BODY_BYTES = 64 * 1024  # a key request has four short fields
_EXAMPLE = {"tenant": "agents", "scopes": ["sessions:write", "jobs:write", "read"]}


@router.post(
    "/v1/api-keys",
    status_code=201,
    summary="Make an API key",
    openapi_extra=openapi.takes(ApiKeyRequest, _EXAMPLE),
    responses={201: openapi.gives(ApiKey, "The key, shown this once"), **openapi.refuses(400, 413, 415)},
)
async def create_key(request: Request, caller: Admin) -> Response:
    """Make a key. Its text is told this one time.

    An admin of the operator's tenant (`default`) makes keys of any scope for any tenant, and a tenant comes into being
    with its first key. Every other admin makes keys for its own tenant, with scopes that its own key has.
    """
    held = services(request)
    wanted = await bodies.read_as(request, ApiKeyRequest, MAX_BODY_BYTES)
    _check_reach(caller, wanted)
    async with held.database.begin() as conn:
        tenant_id = await tenants.ensure_tenant(conn, wanted.tenant)
        issued = await tenants.create_key(
            conn, tenant_id, wanted.scopes, expires_at=wanted.expires_at, pepper=held.settings.key_pepper
        )
    body = ApiKey(
        key=issued.key,
        public_id=issued.public_id,
        tenant=wanted.tenant,
        scopes=wanted.scopes,
        expires_at=wanted.expires_at,
    )
    return json_answer(body, 201, headers={"Cache-Control": "no-store"})


def _check_reach(caller: Principal, wanted: ApiKeyRequest) -> None:
    """Raises Forbidden for a key that would reach further than the caller's own."""
    if caller.is_operator:
        return
    if wanted.tenant != caller.tenant:
        raise Forbidden(
            f"This key makes keys for its own tenant only. For others, ask an admin of the tenant {OPERATOR_TENANT}."
        )
    if beyond := set(wanted.scopes) - caller.scopes:
        raise Forbidden(f"This key gives no scopes that it lacks itself: {', '.join(sorted(beyond))}.")
