"""API keys."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from api import bodies, openapi
from api.answers import json_answer
from api.auth import Admin
from api.schemas.api_keys import ApiKey, ApiKeyRequest
from api.services import services
from compaction.store import tenants

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
    """Make a key for a tenant; the tenant comes into being with its first key. The key's text is told this one time."""
    del caller  # the scope is all that counts here
    held = services(request)
    wanted = await bodies.read_as(request, ApiKeyRequest, MAX_BODY_BYTES)
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
