"""The result of a compaction."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from api.schemas.fields import Answer
from api.schemas.messages import Envelope


class Dropped(Answer):
    """What had to be left out so that the request fitted; it stands in no summary."""

    rounds: int
    messages: int
    tokens: int


class ApiMessage(Answer):
    """A message as the Messages API takes it."""

    role: str
    content: str | list[dict[str, Any]]


class Result(Answer):
    """The compacted conversation and how it came to be."""

    job_id: str
    session_id: str | None = Field(description="null for an inline job")
    strategy: str
    boundary: Envelope
    messages: list[Envelope] = Field(description="[boundary, *summary, *kept, *attachments, *hook results]")
    api_messages: list[ApiMessage] = Field(description="Ready to send: begins with a user message, no system entries")
    attachments: list[Envelope]
    pre_tokens: int
    post_tokens: int
    usage: dict[str, int]
    cost_usd: float | None
    ptl_attempts: int = Field(description="How often the request had to be cut because it was too long")
    dropped: Dropped
    context_management: dict[str, Any] | None
    covers_through_seq: int
    prefix_hash: str
    degraded: bool = Field(description="Made without a model")
    hook_results: list[dict[str, Any]]
    created_at: datetime
