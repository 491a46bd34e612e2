"""A session of a bulk run as an attempt sees it that claims no job: to make its request, and to judge the answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.breaker import BreakerState
from compaction.core.jobs import MAX_ATTEMPTS, PRIORITIES
from compaction.store import session_rows
from compaction.store.bulk_runs import RunRow
from compaction.store.job_queue import Claim
from compaction.store.job_rows import JobRow
from compaction.store.session_rows import SessionRow
from compaction.store.tables import breakers, hooks, session_state, sessions, tenants

NO_JOB = "00000000-0000-0000-0000-000000000000"  # hooks are told an id; the job comes into being with the answer
_SESSION_COLUMNS = len(SessionRow.__dataclass_fields__)


async def claim_of(conn: AsyncConnection, run: RunRow, session_id: int, covers_through_seq: int) -> Claim | None:
    """The facts of a claim for one of the run's sessions; None when the session is gone."""
    wanted = (
        select(
            *session_rows.COLUMNS,
            tenants.c.name,
            sessions.c.parameters,
            breakers.c.failures,
            breakers.c.opened_at,
            breakers.c.last_error_code,
            func.now(),
            exists().where(session_state.c.session_id == sessions.c.id),
            exists().where(hooks.c.tenant_id == sessions.c.tenant_id, hooks.c.enabled),
        )
        .join(tenants, tenants.c.id == sessions.c.tenant_id)
        .outerjoin(breakers, breakers.c.session_id == sessions.c.id)
        .where(sessions.c.id == session_id, sessions.c.tenant_id == run.tenant_id)
    )
    row = (await conn.execute(wanted)).one_or_none()
    if row is None:
        return None
    session = SessionRow(*row[:_SESSION_COLUMNS])
    tenant, parameters, failures, opened_at, code, now, has_state, has_hooks = row[_SESSION_COLUMNS:]
    return Claim(
        job=_job(run, session, covers_through_seq, now),
        token=0,
        covers_through_seq=covers_through_seq,
        paid_summary=None,
        session=session,
        tenant=tenant,
        breaker=BreakerState(failures or 0, opened_at, code),
        claimed_at=now,
        age_seconds=0.0,
        parameters=parameters,
        has_state=has_state,
        has_hooks=has_hooks,
    )


def _job(run: RunRow, session: SessionRow, covers_through_seq: int, now: datetime) -> JobRow:
    nothing: dict[str, Any] = dict.fromkeys(
        (
            *("scope_uuid", "fallback", "token_gap", "deadline_at", "cancel_requested_at", "was_compacted"),
            *("reason", "error", "traceparent", "ended_at"),
        )
    )
    return JobRow(
        **nothing,
        id=NO_JOB,
        tenant_id=run.tenant_id,
        session_id=session.id,
        session_name=session.name,
        status="running",
        trigger="bulk",
        scope_kind="full",
        instructions=run.instructions,
        strategy=run.strategy,
        force=run.force,
        metadata={},
        priority=PRIORITIES["bulk"],
        not_before=now,
        attempt=1,
        max_attempts=MAX_ATTEMPTS,
        crashes=0,
        model_calls=0,
        coalesced=0,
        covers_through_seq=covers_through_seq,
        progress={},
        created_at=now,
        started_at=now,
    )
