"""A request to compact, and the job that it becomes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, ConfigDict, Field, model_validator

from api.schemas.fields import Answer, Instructions, Metadata, Moment, Name, PageQuery, Request, SessionId
from compaction.core.jobs import ScopeKind, Status, StrategyName, Trigger
from compaction.store.job_rows import JobRow

MAX_TOKEN_GAP = 100_000_000  # a hundred times the largest window


_JOB: dict[str, Any] = {
    "id": "01a22e26-5941-7380-aaa5-3156a0f6644b",
    "session_id": "agent-7:2026-11-30",
    "trigger": "manual",
    "scope": {"kind": "full", "uuid": None},
    "status": "succeeded",
    "done": True,
    "attempt": 1,
    "max_attempts": 5,
    "created_at": "2026-11-30T20:29:54.895573Z",
    "started_at": "2026-11-30T20:29:54.931027Z",
    "ended_at": "2026-11-30T20:30:21.408216Z",
    "not_before": "2026-11-30T20:29:54.895573Z",
    "progress": {"step": "committing", "percent": 95},
    "coalesced": 0,
    "was_compacted": True,
    "reason": None,
    "error": None,
    "instructions": "Keep the decisions about the database.",
    "metadata": {"asked_by": "deploy-bot"},
    "result_url": "/v1/compactions/01a22e26-5941-7380-aaa5-3156a0f6644b/result",
}


class ScopeRequest(Request):
    """Which part: all of it, the part up to a message (the newer ones stay), or from a message on."""

    kind: ScopeKind = "full"
    uuid: Name | None = None

    @model_validator(mode="after")
    def _needs_uuid(self) -> Self:
        if (self.kind == "full") != (self.uuid is None):
            raise ValueError("up_to and from need the uuid of a stored message; full takes none")
        return self


class Asked(Request):
    """What is asked for, whatever is compacted."""

    trigger: Trigger = "manual"
    scope: ScopeRequest = ScopeRequest()
    instructions: Instructions | None = None
    strategy: StrategyName | None = None
    fallback: Literal["extractive"] | None = None
    force: bool = False
    token_gap: Annotated[int, Field(ge=0, le=MAX_TOKEN_GAP)] | None = None
    not_before: AwareDatetime | None = None
    metadata: Metadata = Field(default_factory=dict)


class CompactionRequest(Asked):
    """One request to compact a stored session."""

    session_id: SessionId


class JobError(Answer):
    """Why the last attempt failed."""

    code: str
    message: str
    retryable: bool


class JobScope(Answer):
    """Which part of the session the job compacts."""

    kind: ScopeKind
    uuid: str | None = None


class Job(Answer):
    """One request to compact, from its acceptance to its end."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_JOB]})

    id: str
    session_id: str | None = Field(description="null for an inline job: its messages came with it")
    trigger: Trigger
    scope: JobScope
    status: Status
    done: bool = Field(description="Whether the job has ended: succeeded, failed or cancelled")
    attempt: int
    max_attempts: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    not_before: datetime | None
    progress: dict[str, Any] = Field(
        description="{step, percent} of the attempt under way; of a job that waits for a paused provider "
        "{step: waiting, reason: provider_paused, cause, until}: the error code behind it and the next look"
    )
    coalesced: int = Field(description="How many further requests joined this job while it waited")
    was_compacted: bool | None
    reason: str | None = Field(description="Why nothing was compacted, when the job was skipped")
    error: JobError | None
    instructions: str | None
    metadata: dict[str, Any]
    result_url: str | None

    @classmethod
    def of(cls, row: JobRow, progress: dict[str, Any] | None = None) -> Job:
        """The job as clients see it; `progress` where more is known than stands in the row."""
        has_result = row.status == "succeeded" and bool(row.was_compacted)
        return cls(
            id=row.id,
            session_id=row.session_name,
            trigger=row.trigger,
            scope=JobScope(kind=row.scope_kind, uuid=row.scope_uuid),
            status=row.status,
            done=row.done,
            attempt=row.attempt,
            max_attempts=row.max_attempts,
            created_at=row.created_at,
            started_at=row.started_at,
            ended_at=row.ended_at,
            not_before=row.not_before,
            progress=row.progress if progress is None else progress,
            coalesced=row.coalesced,
            was_compacted=row.was_compacted,
            reason=row.reason,
            error=JobError.model_validate(row.error) if row.error else None,
            instructions=row.instructions,
            metadata=row.metadata,
            result_url=f"/v1/compactions/{row.id}/result" if has_result else None,
        )


class JobQuery(PageQuery):
    """Which jobs to list."""

    status: Status | None = None
    session_id: SessionId | None = None
    error_code: Annotated[str, Field(max_length=50, pattern=r"^[a-z_]+$")] | None = None
    trigger: Trigger | None = None
    created_after: Moment | None = Field(default=None, description="At this time or later, RFC 3339")
    created_before: Moment | None = Field(default=None, description="Before this time, RFC 3339")


class JobPage(Answer):
    """A page of jobs, newest first."""

    data: list[Job]
    next_cursor: str | None
    has_more: bool


class Event(Answer):
    """One entry of a job's timeline; never holds content."""

    id: int
    at: datetime
    type: str
    data: dict[str, Any]


class EventPage(Answer):
    """A page of a job's timeline, oldest first."""

    data: list[Event]
    next_cursor: str | None
    has_more: bool
