"""A job's row as the other rooms see it, and the conditions that its partial indexes know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, Text, cast, literal, literal_column, select
from sqlalchemy.dialects.postgresql import JSONB

from compaction.core import jsonbytes
from compaction.core.jobs import TERMINAL, Scope, ScopeKind, Status, StrategyName, Trigger
from compaction.core.jsonbytes import Json
from compaction.errors import Cancelled, JobError
from compaction.store.session_rows import PRODUCERS_NAME
from compaction.store.tables import jobs, sessions


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job. `session_id` is our row id, `session_name` the producer's id; all times are Postgres's.

    An inline job has no `session_name`: its session is its own.
    """

    id: str
    tenant_id: int
    session_id: int
    session_name: str | None
    status: Status
    trigger: Trigger
    scope_kind: ScopeKind
    scope_uuid: str | None
    instructions: str | None = field(repr=False)
    strategy: StrategyName | None
    fallback: str | None
    force: bool
    token_gap: int | None
    metadata: dict[str, Json]
    priority: int
    not_before: datetime
    deadline_at: datetime | None
    attempt: int
    max_attempts: int
    crashes: int
    model_calls: int
    coalesced: int
    cancel_requested_at: datetime | None
    covers_through_seq: int | None
    progress: dict[str, Json]
    was_compacted: bool | None
    reason: str | None
    error: Mapping[str, Json] | None
    traceparent: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    snoozes: int = 0  # times that a rate limit sent it back

    @property
    def scope(self) -> Scope:
        """Which part of the session the job compacts."""
        return Scope(self.scope_kind, self.scope_uuid)

    @property
    def done(self) -> bool:
        """Whether the job has ended, one way or another."""
        return self.status in TERMINAL


def columns(source: FromClause = jobs) -> list[ColumnElement[Any]]:
    """The columns of a JobRow in its order, from the jobs table or a CTE over it, beside `sessions`."""
    return [PRODUCERS_NAME if name == "session_name" else source.c[name] for name in JobRow.__dataclass_fields__]


def rows(source: FromClause = jobs) -> Select[Any]:
    """Selects JobRows from the jobs table or a CTE over it."""
    return select(*columns(source)).join_from(source, sessions, sessions.c.id == source.c.session_id)


def status_is(table: FromClause, *statuses: Status) -> ColumnElement[bool]:
    """A condition on the status, written into the statement: a partial index is found by words, not by parameters."""
    words: list[ColumnElement[Any]] = [literal_column(f"'{status}'") for status in statuses]
    return table.c.status == words[0] if len(words) == 1 else table.c.status.in_(words)


ACTIVE = status_is(jobs, "running", "retrying")  # the words of uq_jobs_active
READY = status_is(jobs, "queued", "retrying")  # the words of ix_jobs_ready and ix_jobs_deadline
RUNNING = status_is(jobs, "running")  # the words of uq_jobs_lease_token
WAITING = status_is(jobs, "queued")  # the words of uq_jobs_waiting


def problem(error: JobError, *, retryable: bool = False) -> ColumnElement[Any]:
    """The error column of a job that ends by our own hand."""
    value = {"code": error.code, "message": error.message, "retryable": retryable}
    return cast(literal(jsonbytes.encode(value).decode(), Text), JSONB)


CANCELLED_ERROR = problem(Cancelled())
