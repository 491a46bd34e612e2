"""Leases as people see them: which worker holds which job, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Integer, Select, bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store import plain
from compaction.store.job_rows import RUNNING
from compaction.store.reach import TENANT_ID
from compaction.store.tables import jobs, sessions, tenants


@dataclass(frozen=True, slots=True)
class Lease:
    """A running job's lease. `token` fences its writes."""

    job_id: str
    tenant: str
    session: str
    owner: str
    token: int
    expires_at: datetime
    attempt: int
    started_at: datetime | None


def _leases() -> Select[Any]:
    return (
        select(
            jobs.c.id,
            tenants.c.name,
            sessions.c.name,
            jobs.c.lease_owner,
            jobs.c.lease_token,
            jobs.c.lease_expires_at,
            jobs.c.attempt,
            jobs.c.started_at,
        )
        .join(sessions, sessions.c.id == jobs.c.session_id)
        .join(tenants, tenants.c.id == jobs.c.tenant_id)
        .where(RUNNING)
    )


_OF_JOB = _leases().where(jobs.c.id == bindparam("b_job_id", type_=jobs.c.id.type), jobs.c.tenant_id == TENANT_ID)
_ALL = _leases().order_by(jobs.c.lease_token).limit(bindparam("b_limit", type_=Integer))


async def of_job(conn: AsyncConnection, tenant_id: int, job_id: str) -> Lease | None:
    """The lease of the tenant's job, if it runs."""
    known = plain.job_id(job_id)
    if known is None:
        return None
    row = (await conn.execute(_OF_JOB, {"b_job_id": known, "b_tenant_id": tenant_id})).one_or_none()
    return None if row is None else Lease(*row)


async def oldest(conn: AsyncConnection, limit: int) -> list[Lease]:
    """The leases that were taken first, of all tenants."""
    return [Lease(*row) for row in await conn.execute(_ALL, {"b_limit": limit})]
