"""A session: what the producer says about it, and how it stands."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from api.schemas.breakers import Breaker
from api.schemas.fields import Answer, Metadata, Name, Query, Request, Text
from compaction.limits import MAX_LIMIT_TOKENS
from compaction.store import erasing
from compaction.store.session_rows import SessionRow


def _system(value: Any) -> Any:  # noqa: ANN401 - JSON
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(block, dict) for block in value):
        return value
    raise ValueError("must be a string or a list of text blocks")


def _tools(value: Any) -> Any:  # noqa: ANN401 - JSON
    if value is None or (isinstance(value, list) and all(isinstance(tool, dict) for tool in value)):
        return value
    raise ValueError("must be a list of tool definitions")


def _request(value: Any) -> Any:  # noqa: ANN401 - JSON
    if value is None or isinstance(value, dict):
        return value
    raise ValueError("must be an object: thinking, tool_choice, betas, effort …")


def _settings(value: dict[str, Any]) -> dict[str, Any]:
    for name in ("context_window", "max_output_tokens"):
        tokens = value.get(name)
        if tokens is not None and not (type(tokens) is int and 1 <= tokens <= MAX_LIMIT_TOKENS):
            raise ValueError(f"{name} must be a whole number of tokens from 1 to {MAX_LIMIT_TOKENS}")
    return value


_OBJECT: dict[str, Any] = {"type": ["object", "null"]}
_OBJECTS: dict[str, Any] = {"type": ["array", "null"], "items": {"type": "object"}}
_SYSTEM: dict[str, Any] = {"type": ["string", "array", "null"], "items": {"type": "object"}}


System = Annotated[Any, AfterValidator(_system), WithJsonSchema(_SYSTEM)]
Tools = Annotated[Any, AfterValidator(_tools), WithJsonSchema(_OBJECTS)]
RequestFields = Annotated[
    Any,
    AfterValidator(_request),
    WithJsonSchema(_OBJECT),
    Field(description="The rest of the producer's own API requests: thinking, tool_choice, betas, effort …"),
]

SettingsFields = Annotated[
    Annotated[Metadata, AfterValidator(_settings)] | None,
    Field(description=f"context_window and max_output_tokens are whole numbers from 1 to {MAX_LIMIT_TOKENS}"),
]


class SessionRequest(Request):
    """What to create or change: an absent field keeps its value, null takes it away; a new session needs a model."""

    model: Name | None = None
    system: System = None
    tools: Tools = None
    request: RequestFields = None
    settings: SettingsFields = None
    query_source: Annotated[Name, Text] | None = None


class Marks(Answer):
    """The marks of the session's window in tokens."""

    window: int
    effective_window: int
    warning: int
    error: int
    auto_compact: int
    block: int


class Fullness(Answer):
    """How full the session is: tokens of the live view against the marks of its window."""

    tokens: int
    level: Literal["ok", "warning", "error", "auto", "blocked"]
    percent_left: int = Field(description="Down to automatic compaction, or to the block where that is off")
    marks: Marks


class StoredSession(Answer):
    """A session as it is stored."""

    id: str
    model: str
    query_source: str | None
    settings: dict[str, Any]
    head_seq: int = Field(description="The seq of the newest message; 0 when there is none")
    live_job_id: str | None = Field(description="The job whose result the live view begins with")
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: SessionRow) -> StoredSession:
        """The session as clients see it."""
        return cls(
            id=row.name,
            model=row.model,
            query_source=row.query_source,
            settings=row.settings,
            head_seq=row.head_seq,
            live_job_id=row.live_job_id,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


_SESSION: dict[str, Any] = {
    "id": "agent-7:2026-11-30",
    "model": "claude-haiku-4-5",
    "query_source": "main",
    "settings": {"auto_compact_enabled": True},
    "head_seq": 277,
    "live_job_id": None,
    "created_at": "2026-11-30T08:02:11.140000Z",
    "updated_at": "2026-11-30T20:29:54.560000Z",
    "state": {
        "tokens": 170_896,
        "level": "auto",
        "percent_left": 0,
        "marks": {
            "window": 200_000,
            "effective_window": 180_000,
            "warning": 160_000,
            "error": 160_000,
            "auto_compact": 167_000,
            "block": 177_000,
        },
    },
    "breaker": {
        "session_id": "agent-7:2026-11-30",
        "state": "closed",
        "failures": 0,
        "opened_at": None,
        "last_error_code": None,
    },
}


class Session(StoredSession):
    """A session and how it stands: its size against its marks, and its circuit breaker."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_SESSION]})

    state: Fullness
    breaker: Breaker


class EraseQuery(Query):
    """What becomes of jobs that have not ended."""

    cancel_jobs: bool = Field(default=False, description="End them too, instead of refusing")


class Erased(Answer):
    """A session that is no more, and how much there was of it."""

    session_id: str
    messages: int
    jobs: int
    cancelled_jobs: int = Field(description="Those of the jobs that had not ended")
    results: int
    deliveries: int = Field(description="Webhook deliveries, sent or not")
    kept_answers: int = Field(description="Answers that were kept for an Idempotency-Key")

    @classmethod
    def of(cls, session_id: str, done: erasing.Erased) -> Erased:
        """What `store.erasing` did."""
        return cls(session_id=session_id, **asdict(done))
