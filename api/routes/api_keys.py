"""API keys: make, list, rotate, revoke."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from api import bodies, openapi
from api.answers import json_answer, page
from api.auth import Admin
from api.found import found
from api.idempotency import IdempotencyKey, once
from api.schemas.api_keys import ApiKey, ApiKeyPage, ApiKeyRequest, ApiKeyRotation, StoredApiKey
from api.schemas.fields import PageQuery
from api.services import services
from compaction.errors import Conflict, Forbidden
from compaction.store import keys, tenants
from compaction.store.tenants import OPERATOR_TENANT, IssuedKey, Principal

router = APIRouter(tags=["api keys"])

MAX_BODY_BYTES = 64 * 1024  # a key request has four short fields
SHOWN = "This request made its key before, and a key is shown once. GET /v1/api-keys lists it, DELETE revokes it."
NO_KEY = "There is no key of this public id. GET /v1/api-keys lists the keys of this key's tenant."
KeyPath = Annotated[str, Path(description="The part of the key between ck_ and the next _", max_length=100)]
_EXAMPLE = {"tenant": "agents", "scopes": ["sessions:write", "jobs:write", "read"]}


@router.post(
    "/v1/api-keys",
    status_code=201,
    summary="Make an API key",
    openapi_extra=openapi.takes(ApiKeyRequest, _EXAMPLE),
    responses={201: openapi.gives(ApiKey, "The key, shown this once"), **openapi.refuses(400, 409, 413, 415)},
)
async def create_key(request: Request, caller: Admin, key: IdempotencyKey) -> Response:
    """Make a key. Its text is told this one time.

    An admin of the operator's tenant (`default`) makes keys of any scope for any tenant, and a tenant comes into being
    with its first key. Every other admin makes keys for its own tenant, with scopes that its own key has. Sent again
    under one `Idempotency-Key` no second key is made, and the answer is 409: the first one is shown no more.
    """
    held = services(request)
    raw = await bodies.read(request, MAX_BODY_BYTES)
    wanted = await bodies.parse(raw, ApiKeyRequest)
    _check_reach(caller, wanted)
    async with once(request, caller, key, raw) as work:
        if work.replay is not None:
            raise Conflict(SHOWN)
        tenant_id = await tenants.ensure_tenant(work.conn, wanted.tenant)
        issued = await tenants.create_key(
            work.conn, tenant_id, wanted.scopes, expires_at=wanted.expires_at, pepper=held.settings.key_pepper
        )
        await work.keep(json_answer({"public_id": issued.public_id}, 201))  # that it was made, and never the key
    return _shown_once(issued, wanted.tenant, wanted.scopes, wanted.expires_at)


@router.get(
    "/v1/api-keys",
    summary="List API keys",
    responses={200: openapi.gives(ApiKeyPage, "Keys, oldest first, revoked and expired ones too"), **openapi.refuses()},
)
async def list_keys(request: Request, caller: Admin, query: Annotated[PageQuery, Query()]) -> Response:
    """The keys of the caller's tenant, without their secrets."""
    async with services(request).database.connect() as conn:
        rows, following = await keys.list_keys(conn, caller.tenant_id, limit=query.limit, cursor=query.cursor)
    return page([StoredApiKey.of(row) for row in rows], following)


@router.post(
    "/v1/api-keys/{public_id}/rotate",
    status_code=201,
    summary="Rotate an API key",
    openapi_extra=openapi.takes(ApiKeyRotation, {"grace_seconds": 3600}),
    responses={201: openapi.gives(ApiKey, "The new key, shown this once"), **openapi.refuses(400, 404, 409, 413, 415)},
)
async def rotate_key(request: Request, caller: Admin, public_id: KeyPath, key: IdempotencyKey) -> Response:
    """Make a key that takes another one's place, with its scopes; the old one works for `grace_seconds` more.

    A key that is revoked or has expired is not rotated (409). Nobody gets scopes this way that its own key lacks.
    """
    held = services(request)
    raw = await bodies.read(request, MAX_BODY_BYTES)
    wanted = await bodies.parse(raw, ApiKeyRotation)
    async with once(request, caller, key, raw) as work:
        if work.replay is not None:
            raise Conflict(SHOWN)
        old = found(await keys.look_up(work.conn, caller.tenant_id, public_id), NO_KEY)
        _check_scopes(caller, old.scopes)
        if not old.valid:
            raise Conflict("The key opens nothing any more, so there is nothing to rotate. Make a new one.")
        expires_at = wanted.expires_at or old.expires_at
        issued = await tenants.create_key(
            work.conn, caller.tenant_id, old.scopes, expires_at=expires_at, pepper=held.settings.key_pepper
        )
        await keys.retire(work.conn, caller.tenant_id, public_id, wanted.grace_seconds)
        await work.keep(json_answer({"public_id": issued.public_id}, 201))
    return _shown_once(issued, caller.tenant, old.scopes, expires_at)


@router.delete(
    "/v1/api-keys/{public_id}",
    status_code=204,
    summary="Revoke an API key",
    responses={204: {"description": "Revoked, now or before"}, **openapi.refuses(404)},
)
async def revoke_key(request: Request, caller: Admin, public_id: KeyPath) -> Response:
    """Revoke a key of the caller's tenant; its next call is unauthorized. Asking again changes nothing.

    The key that makes this call may be revoked too, even the tenant's last one of scope `admin`: the operator then
    makes the next one. When the operator's own last one is gone, a start with another bootstrap key brings one back.
    """
    async with services(request).database.connect() as conn:
        found(await keys.revoke(conn, caller.tenant_id, public_id) or None, NO_KEY)
    return Response(status_code=204)


def _check_reach(caller: Principal, wanted: ApiKeyRequest) -> None:
    """Raises Forbidden for a key that would reach further than the caller's own."""
    if caller.is_operator:
        return
    if wanted.tenant != caller.tenant:
        raise Forbidden(
            f"This key makes keys for its own tenant only. For others, ask an admin of the tenant {OPERATOR_TENANT}."
        )
    _check_scopes(caller, wanted.scopes)


def _check_scopes(caller: Principal, scopes: Iterable[str]) -> None:
    """Raises Forbidden for scopes that the caller's own key lacks, unless it is the operator's."""
    if beyond := set() if caller.is_operator else set(scopes) - caller.scopes:
        raise Forbidden(f"This key gives no scopes that it lacks itself: {', '.join(sorted(beyond))}.")


def _shown_once(issued: IssuedKey, tenant: str, scopes: Iterable[str], expires_at: datetime | None) -> Response:
    """The answer that tells a new key."""
    facts = {"tenant": tenant, "scopes": list(scopes), "expires_at": expires_at}
    body = ApiKey.model_validate({"key": issued.key, "public_id": issued.public_id} | facts)
    return json_answer(body, 201, headers={"Cache-Control": "no-store"})
