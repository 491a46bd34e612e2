"""A session's results as versions: which there are, which one its live view begins with, and the way back.

Choosing moves one pointer. Results and messages stay, so that every version can be chosen again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import exists, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction import errors
from compaction.store import plain
from compaction.store.job_rows import ACTIVE
from compaction.store.session_rows import SessionRow
from compaction.store.tables import jobs, results, sessions

MAX_VERSIONS = 200  # of one list; retention deletes what is older


@dataclass(frozen=True, slots=True)
class Version:
    """A result of a session. `prompt_version` is None for one that was made before it was kept."""

    job_id: str
    trigger: str
    strategy: str
    model: str | None
    prompt_version: int | None
    pre_tokens: int
    post_tokens: int
    cost_usd: Decimal | None
    covers_through_seq: int
    created_at: datetime


_VERSION = tuple(jobs.c.trigger if name == "trigger" else results.c[name] for name in Version.__dataclass_fields__)


async def list_versions(conn: AsyncConnection, session: SessionRow) -> list[Version]:
    """The session's results, newest first."""
    wanted = (
        select(*_VERSION)
        .join(jobs, jobs.c.id == results.c.job_id)
        .where(results.c.session_id == session.id, jobs.c.tenant_id == session.tenant_id)
        .order_by(results.c.lease_token.desc())
        .limit(MAX_VERSIONS)
    )
    return [Version(*row) for row in await conn.execute(wanted)]


async def choose(conn: AsyncConnection, session: SessionRow, job_id: str | None) -> None:
    """Has the live view begin with this result, or with None as the producer stored it.

    Raises NotFound when the session has no such result, Conflict while a job works on the session, or when a newer
    boundary of the producer's makes the result history.
    """
    locked = select(sessions.c.boundary_seq).where(sessions.c.id == session.id).with_for_update(key_share=True)
    boundary_seq = (await conn.execute(locked)).scalar_one()
    if (await conn.execute(select(exists().where(jobs.c.session_id == session.id, ACTIVE)))).scalar_one():
        raise errors.Conflict("A job works on this session. Wait for its end, or cancel it, and choose again.")
    known = None if job_id is None else plain.job_id(job_id)
    if job_id is not None:
        found = select(results.c.covers_through_seq).where(
            results.c.job_id == known, results.c.session_id == session.id
        )
        covers = None if known is None else (await conn.execute(found)).scalar_one_or_none()
        if covers is None:
            raise errors.NotFound("The session has no result of this job. GET …/versions lists those it has.")
        if covers < boundary_seq:
            raise errors.Conflict("The producer stored a newer boundary; the live view begins there.")
    chosen = update(sessions).where(sessions.c.id == session.id, sessions.c.tenant_id == session.tenant_id)
    await conn.execute(chosen.values(live_job_id=known, updated_at=func.now()))
