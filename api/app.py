"""The FastAPI application, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, nullcontext

from fastapi import FastAPI

from api import errors, openapi
from api.dashboard import routers as dashboard
from api.rate_limit import RateHeaders
from api.request_log import RequestLog
from api.routes import (
    api_keys,
    applying,
    breakers,
    bulk,
    compactions,
    context,
    events,
    health,
    hooks,
    imports,
    messages,
    metrics,
    providers,
    results,
    sessions,
    state,
    versions,
    webhooks,
)
from api.services import Doorbell, OwnDoorbell, opened
from compaction import __version__
from compaction.settings import Settings

ROUTERS = (
    sessions.router,
    context.router,
    imports.router,
    messages.router,
    state.router,
    versions.router,
    compactions.router,
    results.router,
    applying.router,
    events.router,
    breakers.router,
    bulk.router,
    api_keys.router,
    hooks.router,
    webhooks.router,
    providers.router,
    health.router,
    metrics.router,
    *dashboard.ROUTERS,
)


def create_app(settings: Settings, *, doorbell: Doorbell | None = None) -> FastAPI:
    """The application for `settings`; `doorbell` replaces the real one in tests."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        bell = aclosing(_doorbell(settings)) if doorbell is None else nullcontext(doorbell)
        async with bell as rung, opened(settings, rung) as held:
            app.state.services = held
            yield

    app = FastAPI(
        title="compactd",
        version=__version__,
        description=openapi.DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # it would load scripts from elsewhere; the document itself is at /openapi.json
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
        generate_unique_id_function=lambda route: route.name,  # operation ids are the names of our functions
    )
    errors.install(app, [route for router in ROUTERS for route in router.routes])
    app.add_middleware(RateHeaders)
    app.add_middleware(RequestLog)
    for router in ROUTERS:
        app.include_router(router)
    openapi.install(app)
    return app


def _doorbell(settings: Settings) -> OwnDoorbell:
    from worker.dispatch import Doorbell as CeleryDoorbell  # noqa: PLC0415 - Celery loads only where it is rung

    return CeleryDoorbell(settings.redis_url)
