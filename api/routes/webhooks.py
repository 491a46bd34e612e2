"""Webhooks: endpoints that hear how jobs end, their secrets, and the log. What is sent is in docs/webhooks.md."""

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
from api.schemas.webhooks import (
    Delivery,
    DeliveryPage,
    NewWebhook,
    Webhook,
    WebhookChange,
    WebhookPage,
    WebhookRequest,
    WebhookRotation,
)
from api.services import services
from compaction.core.addresses import AddressRules
from compaction.errors import Conflict, InvalidRequest
from compaction.hooks import guarded
from compaction.hooks.signing import new_secret
from compaction.store import delivery_log, outbox, webhooks

router = APIRouter(tags=["webhooks"])

MAX_BODY_BYTES = 64 * 1024  # a webhook request has three short fields
NO_WEBHOOK = "There is no webhook of this id. GET /v1/webhooks lists the webhooks of this key's tenant."
SHOWN = "This request made its secret before, and a secret is shown once. Rotate it to get another one."
_NEVER_STORED = {"Cache-Control": "no-store"}
WebhookPath = Annotated[str, Path(description="The webhook's id, as the 201 gave it", max_length=100)]
_EXAMPLE = {"url": "https://agents.example.com/news", "events": ["compaction.failed", "compaction.succeeded"]}


@router.post(
    "/v1/webhooks",
    status_code=201,
    summary="Set up a webhook",
    openapi_extra=openapi.takes(WebhookRequest, _EXAMPLE),
    responses={
        201: openapi.gives(NewWebhook, "The webhook and its secret, shown this once"),
        **openapi.refuses(400, 409, 413, 415),
    },
)
async def create_webhook(request: Request, caller: HookKeeper, key: IdempotencyKey) -> Response:
    """Have an address told how the tenant's jobs end.

    Each call is signed as Standard Webhooks has it, with the secret that this answer tells. Sent again under one
    `Idempotency-Key` no second webhook is made, and the answer is 409: the secret is shown no more.
    """
    held = services(request)
    body = await bodies.read(request, MAX_BODY_BYTES)
    wanted = await bodies.parse(body, WebhookRequest)
    _check_url(wanted.url, held.settings.hook_rules)
    secret = wanted.secret or new_secret()
    async with once(request, caller, key, body) as work:
        if work.replay is not None:
            raise Conflict(SHOWN)
        row = await webhooks.add(work.conn, caller.tenant_id, url=wanted.url, events=wanted.events, secret=secret)
        await work.keep(json_answer({"id": row.id}, 201))  # that it was made, and never its secret
    headers = _NEVER_STORED | {"Location": f"/v1/webhooks/{row.id}"}
    return json_answer(NewWebhook.told(row, secret), 201, headers=headers)


@router.get(
    "/v1/webhooks",
    summary="List webhooks",
    responses={200: openapi.gives(WebhookPage, "Webhooks, oldest first"), **openapi.refuses()},
)
async def list_webhooks(request: Request, caller: HookKeeper, query: Annotated[PageQuery, Query()]) -> Response:
    """The webhooks of the key's tenant, without their secrets."""
    async with services(request).database.connect() as conn:
        rows, following = await webhooks.list_endpoints(conn, caller.tenant_id, limit=query.limit, cursor=query.cursor)
    return page([Webhook.of(row) for row in rows], following)


@router.get(
    "/v1/webhooks/{webhook_id}",
    summary="Read a webhook",
    responses={200: openapi.gives(Webhook, "The webhook"), **openapi.refuses(404)},
)
async def get_webhook(request: Request, caller: HookKeeper, webhook_id: WebhookPath) -> Response:
    """One webhook, without its secret."""
    async with services(request).database.connect() as conn:
        row = found(await webhooks.get(conn, caller.tenant_id, webhook_id), NO_WEBHOOK)
    return json_answer(Webhook.of(row))


@router.patch(
    "/v1/webhooks/{webhook_id}",
    summary="Change a webhook",
    openapi_extra=openapi.takes(WebhookChange, {"events": ["compaction.failed"], "enabled": True}),
    responses={200: openapi.gives(Webhook, "The webhook now"), **openapi.refuses(400, 404, 413, 415)},
)
async def change_webhook(request: Request, caller: HookKeeper, webhook_id: WebhookPath) -> Response:
    """Change address or events, or switch the webhook off and on; switched on, it begins without failures."""
    held = services(request)
    wanted = await bodies.parse(await bodies.read(request, MAX_BODY_BYTES), WebhookChange)
    if wanted.url is not None:
        _check_url(wanted.url, held.settings.hook_rules)
    async with held.database.begin() as conn:
        changed = await webhooks.change(
            conn, caller.tenant_id, webhook_id, url=wanted.url, events=wanted.events, enabled=wanted.enabled
        )
        row = found(changed, NO_WEBHOOK)
    return json_answer(Webhook.of(row))


@router.delete(
    "/v1/webhooks/{webhook_id}",
    status_code=204,
    summary="Take a webhook away",
    responses={204: {"description": "Done"}, **openapi.refuses(404)},
)
async def remove_webhook(request: Request, caller: HookKeeper, webhook_id: WebhookPath) -> Response:
    """Remove one webhook with its log; what waited for it is not sent."""
    async with services(request).database.begin() as conn:
        found(await webhooks.remove(conn, caller.tenant_id, webhook_id) or None, NO_WEBHOOK)
    return Response(status_code=204)


@router.post(
    "/v1/webhooks/{webhook_id}/rotate",
    summary="Rotate a webhook's secret",
    openapi_extra=openapi.takes(WebhookRotation, {"overlap_seconds": 3600}),
    responses={
        200: openapi.gives(NewWebhook, "The webhook and its new secret, shown this once"),
        **openapi.refuses(400, 404, 409, 413, 415),
    },
)
async def rotate_secret(request: Request, caller: HookKeeper, webhook_id: WebhookPath, key: IdempotencyKey) -> Response:
    """Get another secret. For `overlap_seconds` each call carries a signature of both, so that none is missed."""
    body = await bodies.read(request, MAX_BODY_BYTES)
    wanted = await bodies.parse(body, WebhookRotation)
    secret = wanted.secret or new_secret()
    async with once(request, caller, key, body) as work:
        if work.replay is not None:
            raise Conflict(SHOWN)
        overlap = wanted.overlap_seconds
        rotated = webhooks.rotate(work.conn, caller.tenant_id, webhook_id, secret=secret, overlap_seconds=overlap)
        row = found(await rotated, NO_WEBHOOK)
        await work.keep(json_answer({"id": row.id}))
    return json_answer(NewWebhook.told(row, secret), headers=_NEVER_STORED)


@router.post(
    "/v1/webhooks/{webhook_id}/test",
    status_code=202,
    summary="Send a ping",
    responses={202: openapi.gives(Delivery, "It will be sent like any news"), **openapi.refuses(404, 409)},
)
async def send_ping(request: Request, caller: HookKeeper, webhook_id: WebhookPath, key: IdempotencyKey) -> Response:
    """Have a `webhook.ping` sent; the log says what came of it. 409 when the webhook is switched off."""
    async with once(request, caller, key) as work:
        if work.replay is not None:
            return work.replay
        row = found(await webhooks.get(work.conn, caller.tenant_id, webhook_id), NO_WEBHOOK)
        if not row.enabled:
            raise Conflict("The webhook is switched off. Switch it on with PATCH and `enabled: true` first.")
        made = found(await outbox.ping(work.conn, caller.tenant_id, row.id), NO_WEBHOOK)
        sent = found(await delivery_log.get(work.conn, caller.tenant_id, made), NO_WEBHOOK)
        return await work.keep(json_answer(Delivery.of(sent), 202))


@router.get(
    "/v1/webhooks/{webhook_id}/deliveries",
    summary="The log of a webhook",
    responses={200: openapi.gives(DeliveryPage, "What was sent, newest first"), **openapi.refuses(404)},
)
async def list_deliveries(
    request: Request, caller: HookKeeper, webhook_id: WebhookPath, query: Annotated[PageQuery, Query()]
) -> Response:
    """What was sent and what came of it: status, tries, the code of the last failure. Never what a receiver said."""
    async with services(request).database.begin() as conn:
        found(await webhooks.get(conn, caller.tenant_id, webhook_id), NO_WEBHOOK)
        rows, following = await delivery_log.list_deliveries(
            conn, caller.tenant_id, webhook_id, limit=query.limit, cursor=query.cursor
        )
    return page([Delivery.of(row) for row in rows], following)


def _check_url(url: str, rules: AddressRules) -> None:
    """Raises InvalidRequest for an address that no call would ever go to; names are judged at each call."""
    try:
        guarded.checked(url, rules)
    except guarded.CallProblem as problem:
        raise InvalidRequest("The webhook's address cannot be called.", fields=(("url", str(problem)),)) from None
