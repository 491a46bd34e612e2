"""What the API answers, as typed dictionaries: the JSON itself, with names for the type checker."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypedDict, TypeVar

Item = TypeVar("Item")


class JobError(TypedDict):
    """Why the last attempt failed."""

    code: str
    message: str
    retryable: bool


class Job(TypedDict):
    """One request to compact."""

    id: str
    session_id: str
    trigger: str
    scope: dict[str, Any]
    status: Literal["queued", "running", "retrying", "succeeded", "failed", "cancelled"]
    done: bool
    attempt: int
    max_attempts: int
    created_at: str
    started_at: str | None
    ended_at: str | None
    not_before: str | None
    progress: dict[str, Any]
    coalesced: int
    was_compacted: bool | None
    reason: str | None
    error: JobError | None
    instructions: str | None
    metadata: dict[str, Any]
    result_url: str | None


class Breaker(TypedDict):
    """A session's circuit breaker."""

    session_id: str
    state: Literal["closed", "open", "half_open"]
    failures: int
    opened_at: str | None
    last_error_code: str | None


class Context(TypedDict):
    """What fills a session's window."""

    session_id: str
    window: int
    tokens: int
    anchored: bool
    percent_of_window: float
    estimated_tokens: int
    kinds: list[dict[str, Any]]
    roles: dict[str, dict[str, int]]
    tools: list[dict[str, Any]]
    repeated_reads: list[dict[str, Any]]
    wasted_tokens: int


class Fullness(TypedDict):
    """Tokens of the live view against the marks of its window."""

    tokens: int
    level: Literal["ok", "warning", "error", "auto", "blocked"]
    percent_left: int
    marks: dict[str, int]


class StoredSession(TypedDict):
    """A session as it is stored."""

    id: str
    model: str
    query_source: str | None
    settings: dict[str, Any]
    head_seq: int
    live_job_id: str | None
    created_at: str
    updated_at: str


class Session(StoredSession):
    """A session and how it stands."""

    state: Fullness
    breaker: Breaker


class Appended(TypedDict):
    """What became of a batch of messages."""

    session_id: str
    head_seq: int
    appended: int
    duplicates: int
    replaced: int


class Imported(TypedDict):
    """What became of a transcript."""

    session_id: str
    head_seq: int
    appended: int
    duplicates: int
    report: dict[str, Any]


class Result(TypedDict):
    """A compacted conversation and how it came to be."""

    job_id: str
    session_id: str
    strategy: str
    boundary: dict[str, Any]
    messages: list[dict[str, Any]]
    api_messages: list[dict[str, Any]]
    attachments: list[dict[str, Any]]
    pre_tokens: int
    post_tokens: int
    usage: dict[str, int]
    cost_usd: float | None
    ptl_attempts: int
    dropped: dict[str, int]
    context_management: dict[str, Any] | None
    covers_through_seq: int
    prefix_hash: str
    degraded: bool
    hook_results: list[dict[str, Any]]
    created_at: str


class Page(TypedDict, Generic[Item]):
    """A page of a list."""

    data: list[Item]
    next_cursor: str | None
    has_more: bool
