"""Reading for a crowd: the jobs that many callers wait for, by one statement, each behind the wall of its tenant."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import BigInteger, Text, bindparam, cast, column, func, select
from sqlalchemy.dialects.postgresql import ARRAY, UUID
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store import plain
from compaction.store.job_reads import JobEvent
from compaction.store.job_rows import JobRow, rows
from compaction.store.tables import job_events, jobs

Asked = tuple[int, str]  # a tenant's row id and a job's id

_WANTED = (
    func.unnest(bindparam("b_job_ids", type_=ARRAY(Text)), bindparam("b_numbers", type_=ARRAY(BigInteger)))
    .table_valued(column("job_id", Text), column("number", BigInteger))
    .render_derived(name="wanted")
)
_JOB_ID = cast(_WANTED.c.job_id, UUID(as_uuid=False))
_JOBS = rows().join(_WANTED, (jobs.c.id == _JOB_ID) & (jobs.c.tenant_id == _WANTED.c.number))
_EVENTS = (
    select(job_events.c.job_id, job_events.c.id, job_events.c.at, job_events.c.type, job_events.c.data)
    .join(_WANTED, (job_events.c.job_id == _JOB_ID) & (job_events.c.id > _WANTED.c.number))
    .order_by(job_events.c.id)
)


async def get_many(conn: AsyncConnection, asked: Collection[Asked]) -> dict[Asked, JobRow]:
    """The tenants' jobs of those ids; one that is not there, or not that tenant's, is missing."""
    known = {one: found for one in asked if (found := plain.job_id(one[1])) is not None}
    if not known:
        return {}
    values = {"b_job_ids": list(known.values()), "b_numbers": [tenant_id for tenant_id, _ in known]}
    read = [JobRow(*row) for row in await conn.execute(_JOBS, values)]
    by_id = {(row.tenant_id, row.id): row for row in read}
    return {one: row for one, job_id in known.items() if (row := by_id.get((one[0], job_id))) is not None}


async def events_after(conn: AsyncConnection, places: Mapping[str, int]) -> dict[str, list[JobEvent]]:
    """The events of each job after the one with that id, oldest first. Only for jobs that the caller may see."""
    known = {job_id: after for one, after in places.items() if (job_id := plain.job_id(one)) is not None}
    found: dict[str, list[JobEvent]] = {job_id: [] for job_id in known}
    if known:
        values = {"b_job_ids": list(known), "b_numbers": [min(after, plain.MAX_NUMBER) for after in known.values()]}
        for job_id, *event in await conn.execute(_EVENTS, values):
            found[job_id].append(JobEvent(*event))
    return found
