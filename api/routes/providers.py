"""Providers: which are paused and why, and the operator's word that one works again. All tenants share them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from api import openapi
from api.answers import json_answer
from api.auth import ProviderKeeper
from api.schemas.providers import Provider, ProviderList
from api.services import services
from compaction.errors import NotFound
from compaction.store import pauses
from compaction.store.pauses import PauseRow

router = APIRouter(tags=["providers"])

ProviderPath = Annotated[str, Path(description="The provider's name", pattern=r"^[a-z0-9\-]{1,100}$")]


@router.get(
    "/v1/providers",
    summary="Paused providers",
    responses={200: openapi.gives(ProviderList, "Every credential that was ever paused"), **openapi.refuses()},
)
async def list_providers(request: Request, _caller: ProviderKeeper) -> Response:
    """Credentials at the model's API that were paused by a refused key, an empty account or an outage.

    One page holds them all: there is one for each credential that the operator's workers ever used.
    """
    async with services(request).database.connect() as conn:
        rows = await pauses.list_pauses(conn)
    return json_answer(ProviderList(data=[Provider.of(row) for row in rows]))


@router.post(
    "/v1/providers/{name}/resume",
    summary="Resume a paused provider",
    responses={200: openapi.gives(Provider, "Open"), **openapi.refuses(404)},
)
async def resume(request: Request, _caller: ProviderKeeper, name: ProviderPath) -> Response:
    """Let jobs call the provider again at once, without waiting for its probe. Asking again changes nothing."""
    async with services(request).database.begin() as conn:
        await pauses.resume(conn, name)
        row = _named(await pauses.list_pauses(conn), name)
    return json_answer(Provider.of(row))


def _named(rows: list[PauseRow], name: str) -> PauseRow:
    for row in rows:
        if row.provider == name:
            return row
    raise NotFound("No provider of this name was ever paused.")
