"""Metrics for Prometheus: counts and durations only, of no tenant and no session, so no key is asked for."""

from __future__ import annotations

from fastapi import APIRouter
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0, generate_latest
from starlette.responses import Response

from api.metrics import REGISTRY

router = APIRouter(tags=["health"])


@router.get("/metrics", summary="Metrics", response_class=Response)
async def metrics() -> Response:
    """What this API process counted, in the Prometheus text format."""
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_PLAIN_1_0_0)
