"""Reach: whose rows a look may see. One tenant's, or those of all for whoever runs the service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Text, bindparam, select
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store import plain
from compaction.store.tables import jobs, sessions, tenants

TENANT_ID = bindparam("b_tenant_id", type_=BigInteger)


@dataclass(frozen=True, slots=True)
class Reach:
    """The tenant whose rows may be seen; None: everybody's."""

    tenant_id: int | None = None

    @property
    def is_walled(self) -> bool:
        """Whether a statement must name the tenant."""
        return self.tenant_id is not None

    @property
    def values(self) -> dict[str, Any]:
        """What a walled statement needs."""
        return {} if self.tenant_id is None else {"b_tenant_id": self.tenant_id}

    def wall(self, column: ColumnElement[Any]) -> list[ColumnElement[bool]]:
        """The condition on a tenant's column; none without a wall."""
        return [column == TENANT_ID] if self.is_walled else []


@dataclass(frozen=True, slots=True)
class Owner:
    """The tenant that something belongs to."""

    tenant_id: int
    tenant: str


async def owner_of_job(conn: AsyncConnection, reach: Reach, job_id: str) -> Owner | None:
    """Whose job it is; None when there is none within reach."""
    known = plain.job_id(job_id)
    if known is None:
        return None
    of_job = select(tenants.c.id, tenants.c.name).join(jobs, jobs.c.tenant_id == tenants.c.id)
    wanted = of_job.where(jobs.c.id == bindparam("b_job_id", type_=jobs.c.id.type), *reach.wall(jobs.c.tenant_id))
    row = (await conn.execute(wanted, {"b_job_id": known, **reach.values})).one_or_none()
    return None if row is None else Owner(*row)


async def owner_of_session(conn: AsyncConnection, reach: Reach, tenant: str, name: str) -> Owner | None:
    """The tenant of that name, if it has such a session within reach."""
    of_session = select(tenants.c.id, tenants.c.name).join(sessions, sessions.c.tenant_id == tenants.c.id)
    wanted = of_session.where(
        sessions.c.name == bindparam("b_session_name", type_=Text),
        tenants.c.name == bindparam("b_tenant", type_=Text),
        *reach.wall(sessions.c.tenant_id),
    )
    names = {"b_session_name": plain.text("session", name), "b_tenant": plain.text("tenant", tenant)}
    row = (await conn.execute(wanted, names | reach.values)).one_or_none()
    return None if row is None else Owner(*row)


async def narrowed(conn: AsyncConnection, reach: Reach, tenant: str | None) -> Reach | None:
    """The reach cut down to the tenant of that name; None when nobody within reach has it."""
    if not tenant:
        return reach
    wanted = select(tenants.c.id).where(tenants.c.name == bindparam("b_tenant", type_=Text), *reach.wall(tenants.c.id))
    found: int | None = (
        await conn.execute(wanted, {"b_tenant": plain.text("tenant", tenant), **reach.values})
    ).scalar_one_or_none()
    return None if found is None else Reach(found)
