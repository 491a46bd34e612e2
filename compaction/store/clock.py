"""Postgres's clock, which is the product's: leases, retries and ages are told by it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

_NOW = select(func.clock_timestamp())


async def read(conn: AsyncConnection) -> datetime:
    """What time it is there at this moment, with its time zone."""
    now: datetime = (await conn.execute(_NOW)).scalar_one()
    return now
