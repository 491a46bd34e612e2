"""Standstill: every living worker's provider is paused, so that what waits goes on waiting."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Double, and_, bindparam, func, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store.tables import provider_pauses, workers


@dataclass(frozen=True, slots=True)
class Standstill:
    """Why nothing starts: the error code that paused the providers, and when one of them is probed next."""

    cause: str | None
    until: datetime | None


_SECOND: ColumnElement[Any] = literal_column("interval '1 second'")
_PAUSED = and_(provider_pauses.c.provider == workers.c.provider, provider_pauses.c.phase == literal_column("'paused'"))
_LIVING = (
    select(
        func.coalesce(func.bool_and(provider_pauses.c.provider.is_not(None)), literal_column("false")),
        func.min(provider_pauses.c.reason),
        func.min(provider_pauses.c.probe_at),
    )
    .select_from(workers)
    .outerjoin(provider_pauses, _PAUSED)
    .where(workers.c.beat_at > func.now() - bindparam("b_seconds", type_=Double) * _SECOND)
)


async def standstill(conn: AsyncConnection, silent_seconds: float) -> Standstill | None:
    """The standstill of now, None while any worker could start a job. Workers silent for so long are not living."""
    stands, cause, until = (await conn.execute(_LIVING, {"b_seconds": silent_seconds})).one()
    return Standstill(cause, until) if stands else None
