"""Liveness and readiness, for supervisors and load balancers; no key is asked for and no secret is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from fastapi import APIRouter, Request
from redis.asyncio import Redis
from redis.exceptions import RedisError
from starlette.responses import RedirectResponse, Response

from api import openapi
from api.answers import json_answer
from api.services import Services, services
from compaction import __version__
from compaction.core.jobs import SELF_FENCE_SECONDS
from compaction.errors import CompactdError
from compaction.store import clock, migrate, pauses, workers

router = APIRouter(tags=["health"])

PROBE_SECONDS = 2.0  # a probe that takes longer is a failed one
MAX_SKEW_SECONDS = 5.0  # between our clock and the database's: more than any healthy time service leaves
SILENT_SECONDS = float(SELF_FENCE_SECONDS)  # without a beat for so long a worker has given its jobs up


@dataclass(frozen=True, slots=True)
class Part:
    """One thing the service stands on."""

    ok: bool
    detail: str


def _shown(example: dict[str, Any], description: str = "The state") -> openapi.Extra:
    schema = {"type": "object", "required": ["status"]}
    return {"description": description, "content": {"application/json": {"schema": schema, "example": example}}}


_READY: dict[str, Any] = {"status": "ready", "parts": {"database": {"ok": True, "detail": "answers"}}}
_MISSING = Part(ok=False, detail="not asked")


@router.get("/healthz", summary="Liveness", responses={200: _shown({"status": "ok", "version": __version__})})
async def healthz() -> Response:
    """The process answers."""
    return json_answer({"status": "ok", "version": __version__})


@router.get("/docs", include_in_schema=False)
async def docs() -> Response:
    """Where people look first: the document itself. A page that draws it would load scripts from elsewhere."""
    return RedirectResponse("/openapi.json")


@router.get(
    "/readyz",
    summary="Readiness",
    responses={200: _shown(_READY), 503: _shown(_READY | {"status": "unready"}, "Not ready")},
)
async def readyz(request: Request) -> Response:
    """Whether requests can be served: the database answers and has the newest tables.

    Redis, workers, paused providers and the clock are told too, but do not decide: jobs are accepted and run later.
    """
    held = services(request)
    parts = {"database": await _probed(_database(held))}
    if parts["database"].ok:
        parts["migrations"] = await _probed(_migrations(held))
        parts["workers"] = await _probed(_workers(held))
        parts["providers"] = await _probed(_providers(held))
        parts["clock"] = await _probed(_clock(held))
    parts["redis"] = await _probed(_redis(held))
    ready = all(parts.get(name, _MISSING).ok for name in ("database", "migrations"))
    degraded = ready and not all(part.ok for part in parts.values())
    status = "degraded" if degraded else "ready" if ready else "unready"
    document = {"status": status, "parts": {name: asdict(part) for name, part in parts.items()}}
    return json_answer(document, 200 if ready else 503, headers={"Cache-Control": "no-store"})


async def _probed(probe: Awaitable[Part]) -> Part:
    try:
        return await asyncio.wait_for(probe, PROBE_SECONDS)
    except TimeoutError:
        return Part(ok=False, detail=f"no answer within {PROBE_SECONDS:g} s")
    except CompactdError as error:
        return Part(ok=False, detail=error.message)
    except (OSError, RedisError) as error:
        return Part(ok=False, detail=type(error).__name__)


async def _database(held: Services) -> Part:
    await held.database.ping()
    return Part(ok=True, detail="answers")


async def _migrations(held: Services) -> Part:
    """A revision that we do not know is a newer release's: it migrates first, and we go on until we are replaced."""
    revision = await held.revision.read()
    if revision is not None and revision not in _revisions():
        return Part(ok=True, detail="ahead: a newer release has migrated")
    at_head = revision in _heads()
    return Part(ok=at_head, detail="at head" if at_head else "behind: run the migrations of this version")


@cache
def _heads() -> tuple[str, ...]:
    return migrate.heads()


@cache
def _revisions() -> frozenset[str]:
    return migrate.revisions()


async def _workers(held: Services) -> Part:
    async with held.database.connect() as conn:
        known = await workers.list_workers(conn)
    alive = [worker for worker in known if worker.silent_seconds <= SILENT_SECONDS]
    return Part(ok=bool(alive), detail=f"{len(alive)} alive" if alive else "none alive: jobs are accepted and wait")


async def _providers(held: Services) -> Part:
    async with held.database.connect() as conn:
        alive = [one for one in await workers.list_workers(conn) if one.silent_seconds <= SILENT_SECONDS]
        used = {worker.provider for worker in alive}  # a pause of a credential that is gone troubles nobody
        shut = [row for row in await pauses.list_pauses(conn) if row.phase != "open" and row.provider in used]
    words = ", ".join(f"{row.provider}: {row.phase} ({row.reason})" for row in shut)
    return Part(ok=not shut, detail=words or "none in use is paused")


async def _clock(held: Services) -> Part:
    """Ours against the database's, by which the product goes; a slow answer is not a wrong clock."""
    async with held.database.connect() as conn:
        before = datetime.now(UTC)
        theirs = await clock.read(conn)
        after = datetime.now(UTC)
    seconds = max((before - theirs).total_seconds(), (theirs - after).total_seconds(), 0.0)
    ok = seconds <= MAX_SKEW_SECONDS
    return Part(ok=ok, detail="agrees with the database's" if ok else f"{seconds:.0f} s off the database's")


async def _redis(held: Services) -> Part:
    client = Redis.from_url(held.settings.redis_url, socket_timeout=PROBE_SECONDS, socket_connect_timeout=PROBE_SECONDS)
    try:
        await client.ping()
    finally:
        await client.aclose()
    lost = held.rings.lost
    return Part(ok=True, detail=f"answers; {lost} doorbell rings lost since the start" if lost else "answers")
