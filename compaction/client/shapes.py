"""What the API answers, as typed dictionaries: the JSON itself, with names for the type checker."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar

Item = TypeVar("Item")


Trigger = Literal["auto", "manual", "reactive", "bulk"]
Level = Literal["ok", "warning", "error", "auto", "blocked"]
ResultFormat = Literal["envelopes", "anthropic", "openai", "claude_code"]


class SessionFields(TypedDict, total=False):
    """What PUT /v1/sessions/{id} takes. `model` is needed for a new session."""

    model: str
    system: str | list[dict[str, Any]] | None
    tools: list[dict[str, Any]] | None
    request: dict[str, Any] | None
    settings: dict[str, Any]
    query_source: str | None


class Scope(TypedDict, total=False):
    """Which part to compact: `full`, `up_to` the message `uuid`, or `from` it on."""

    kind: Literal["full", "up_to", "from"]
    uuid: str


class Wanted(TypedDict, total=False):
    """What POST /v1/compactions takes beside the session."""

    trigger: Trigger
    scope: Scope
    instructions: str
    strategy: str
    fallback: Literal["extractive"]
    force: bool
    token_gap: int
    not_before: str | datetime
    metadata: dict[str, Any]


class InlineFields(Wanted, total=False):
    """What an inline job takes beside model and messages."""

    system: str | list[dict[str, Any]] | None
    tools: list[dict[str, Any]] | None
    request: dict[str, Any] | None
    settings: dict[str, Any]
    query_source: str | None
    format: Literal["auto", "anthropic_messages", "openai_chat", "claude_code"]


class JobFilters(TypedDict, total=False):
    """What GET /v1/compactions can be asked for; times in RFC 3339."""

    status: str | None
    session_id: str | None
    error_code: str | None
    trigger: str | None
    created_after: str | None
    created_before: str | None
    limit: int
    cursor: str | None


class JobError(TypedDict):
    """Why the last attempt failed."""

    code: str
    message: str
    retryable: bool


class Job(TypedDict):
    """One request to compact."""

    id: str
    session_id: str | None  # None: an inline job's
    trigger: Trigger
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


class Erased(TypedDict):
    """A session that is no more, and how much there was of it."""

    session_id: str
    messages: int
    jobs: int
    cancelled_jobs: int
    results: int
    deliveries: int
    kept_answers: int


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
    level: Level
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
    session_id: str | None  # None: an inline job's
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


class AnthropicRequest(TypedDict):
    """What a conversation decides of a Messages API request: `messages.create(max_tokens=…, **request)`."""

    model: str
    system: NotRequired[str | list[dict[str, Any]]]
    tools: NotRequired[list[dict[str, Any]]]
    messages: list[dict[str, Any]]
    context_management: NotRequired[dict[str, Any]]


class ChatRequest(TypedDict):
    """What a conversation decides of a chat completion: `chat.completions.create(**request)`."""

    model: str
    tools: NotRequired[list[dict[str, Any]]]
    messages: list[dict[str, Any]]


class Applied(TypedDict):
    """A result that was taken over: go on with `api_messages`, which are the result and the tail in one list."""

    job_id: str
    session_id: str
    applied_at: str
    covers_through_seq: int
    head_seq: int
    messages: list[dict[str, Any]]
    api_messages: list[dict[str, Any]]


class Event(TypedDict):
    """One entry of a job's timeline; never holds content."""

    id: int
    at: str
    type: str
    data: dict[str, Any]


class Part(TypedDict):
    """One thing that the service stands on."""

    ok: bool
    detail: str


class Readiness(TypedDict):
    """GET /readyz: `parts` are database, migrations, redis, workers, providers and clock."""

    status: Literal["ready", "degraded", "unready"]
    parts: dict[str, Part]


class WebhookNews(TypedDict):
    """What a webhook brings: the type (`compaction.succeeded` …), when, and ids and codes; never content."""

    type: str
    timestamp: str
    data: dict[str, Any]


class Page(TypedDict, Generic[Item]):
    """A page of a list."""

    data: list[Item]
    next_cursor: str | None
    has_more: bool
