"""Running a job again: a new one with the parameters of one that has ended, over the session as it is now."""

from __future__ import annotations

from compaction.core.backpressure import Caps
from compaction.errors import Conflict
from compaction.store import jobs
from compaction.store.engine import Connection
from compaction.store.jobs import Enqueued, JobRow, NewJob


async def again(conn: Connection, old: JobRow, caps: Caps, traceparent: str | None = None) -> Enqueued:
    """The new job, or the waiting one that it joined. Raises Conflict for one that has not ended, and when full."""
    if not old.done:
        raise Conflict("The job has not ended; it needs no retry. Cancel it first if it should start anew.")
    return await jobs.enqueue(conn, _like(old, traceparent), announced=True, caps=caps)


def _like(old: JobRow, traceparent: str | None) -> NewJob:
    return NewJob(
        tenant_id=old.tenant_id,
        session_id=old.session_id,
        trigger=old.trigger,
        scope=old.scope,
        instructions=old.instructions,
        strategy=old.strategy,
        fallback=old.fallback,
        force=old.force,
        token_gap=old.token_gap,
        not_before=None,
        metadata=old.metadata,
        traceparent=traceparent or old.traceparent,
    )
