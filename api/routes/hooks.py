"""HTTP hooks: set up, look, take away. What they are asked and may answer is in docs/hooks.md."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from api import bodies, openapi
from api.answers import json_answer, page
from api.auth import HookKeeper
from api.found import found
from api.idempotency import IdempotencyKey, once
from api.schemas.fields import PageQuery
from api.schemas.hooks import Hook, HookPage, HookRequest
from api.services import services
from compaction.core.addresses import AddressRules
from compaction.errors import InvalidRequest
from compaction.hooks import guarded
from compaction.store import hooks

router = APIRouter(tags=["hooks"])

MAX_BODY_BYTES = 64 * 1024  # a hook request has four short fields
NO_HOOK = "There is no hook of this id. GET /v1/hooks lists the hooks of this key's tenant."
HookPath = Annotated[str, Path(description="The hook's id, as the 201 gave it", max_length=100)]
_EXAMPLE = {
    "event": "pre_compact",
    "url": "https://agents.example.com/hooks/compaction",
    "secret": "whsec_Y29tcGFjdGQtZXhhbXBsZS1zZWNyZXQh",
    "timeout_s": 5,
}


@router.post(
    "/v1/hooks",
    status_code=201,
    summary="Set up an HTTP hook",
    openapi_extra=openapi.takes(HookRequest, _EXAMPLE),
    responses={
        201: openapi.gives(Hook, "The hook; it is asked from the next job on"),
        **openapi.refuses(400, 409, 413, 415),
    },
)
async def create_hook(request: Request, caller: HookKeeper, key: IdempotencyKey) -> Response:
    """Have an address asked at each of the tenant's compactions: before it (it may veto), or after it."""
    held = services(request)
    body = await bodies.read(request, MAX_BODY_BYTES)
    wanted = await bodies.parse(body, HookRequest)
    _check_url(wanted.url, held.settings.hook_rules)
    async with once(request, caller, key, body) as work:
        if work.replay is not None:
            return work.replay
        row = await hooks.add(
            work.conn,
            caller.tenant_id,
            event=wanted.event,
            url=wanted.url,
            secret=wanted.secret,
            timeout_seconds=wanted.timeout_s,
        )
        return await work.keep(json_answer(Hook.of(row), 201, headers={"Location": f"/v1/hooks/{row.id}"}))


@router.get(
    "/v1/hooks",
    summary="List HTTP hooks",
    responses={200: openapi.gives(HookPage, "Hooks, oldest first, in the order that decides"), **openapi.refuses()},
)
async def list_hooks(request: Request, caller: HookKeeper, query: Annotated[PageQuery, Query()]) -> Response:
    """The hooks of the key's tenant, without their secrets."""
    async with services(request).database.connect() as conn:
        rows, following = await hooks.list_hooks(conn, caller.tenant_id, limit=query.limit, cursor=query.cursor)
    return page([Hook.of(row) for row in rows], following)


@router.get(
    "/v1/hooks/{hook_id}",
    summary="Read an HTTP hook",
    responses={200: openapi.gives(Hook, "The hook"), **openapi.refuses(404)},
)
async def get_hook(request: Request, caller: HookKeeper, hook_id: HookPath) -> Response:
    """One hook, without its secret."""
    async with services(request).database.connect() as conn:
        row = found(await hooks.get(conn, caller.tenant_id, hook_id), NO_HOOK)
    return json_answer(Hook.of(row))


@router.delete(
    "/v1/hooks/{hook_id}",
    status_code=204,
    summary="Take an HTTP hook away",
    responses={204: {"description": "Done"}, **openapi.refuses(404)},
)
async def remove_hook(request: Request, caller: HookKeeper, hook_id: HookPath) -> Response:
    """Remove one hook; jobs that start from now on do not ask it."""
    async with services(request).database.connect() as conn:
        found(await hooks.remove(conn, caller.tenant_id, hook_id) or None, NO_HOOK)
    return Response(status_code=204)


def _check_url(url: str, rules: AddressRules) -> None:
    """Raises InvalidRequest for an address that no call would ever go to; names are judged at each call."""
    try:
        guarded.checked(url, rules)
    except guarded.CallProblem as problem:
        raise InvalidRequest("The hook's address cannot be called.", fields=(("url", str(problem)),)) from None
