"""The result of a compaction."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field

from api.schemas.fields import Answer, Query
from api.schemas.messages import ChatMessage, Envelope
from compaction.formats.output import OutputFormat

ResultFormat = Literal["envelopes", OutputFormat]

_TEXT = "This session goes on from …"
_BOUNDARY_UUID, _SUMMARY_UUID = "5f0f2c1e-8f52-4c8e-9d4f-0b7b4f1f2a10", "0e6c2f1a-58a3-5d0c-9a41-7c1f0f7d2b11"
_ROW: dict[str, Any] = {
    "isSidechain": False,
    "userType": "external",
    "cwd": "",
    "sessionId": "0b5e7f0a-1111-4222-8333-444455556666",
    "version": "2.1.25",
    "gitBranch": "",
}
_ROWS: list[dict[str, Any]] = [
    {
        "parentUuid": None,
        **_ROW,
        "logicalParentUuid": "8a1d6d0e-2f62-4b0c-8f7f-5f6f7a8b9c0d",
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "isMeta": False,
        "level": "info",
        "compactMetadata": {"trigger": "manual", "preTokens": 170_896},
        "uuid": _BOUNDARY_UUID,
        "timestamp": "2026-11-30T20:29:54.895Z",
    },
    {
        "parentUuid": _BOUNDARY_UUID,
        **_ROW,
        "type": "user",
        "message": {"role": "user", "content": _TEXT},
        "isVisibleInTranscriptOnly": True,
        "isCompactSummary": True,
        "uuid": _SUMMARY_UUID,
        "timestamp": "2026-11-30T20:29:54.896Z",
    },
]
LOG_EXAMPLE = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in _ROWS)


class ResultQuery(Query):
    """In which format to give a result."""

    format: ResultFormat = Field(
        default="envelopes",
        description="envelopes: the whole result; anthropic: a Messages API request's members; openai: a chat "
        "completion's; claude_code: rows to append to a session's log",
    )


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


class AnthropicRequest(Answer):
    """What a conversation decides of a Messages API request; add max_tokens, the next user message, and send it."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "model": "claude-haiku-4-5",
                    "system": "You are a careful engineer.",
                    "messages": [{"role": "user", "content": _TEXT}],
                }
            ]
        },
    )

    model: str
    system: str | list[dict[str, Any]] | None = Field(
        None, description="As the session has it; absent when it has none"
    )
    tools: list[dict[str, Any]] | None = Field(None, description="The same")
    messages: list[ApiMessage]
    context_management: dict[str, Any] | None = Field(
        None, description="An edit that the API carries out; absent when the messages say everything"
    )


class ChatRequest(Answer):
    """What a conversation decides of a chat completion; the system prompt is its first message."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "model": "claude-haiku-4-5",
                    "messages": [
                        {"role": "system", "content": "You are a careful engineer."},
                        {"role": "user", "content": _TEXT},
                    ],
                }
            ]
        },
    )

    model: str
    tools: list[dict[str, Any]] | None = Field(None, description="The session's functions; absent when it has none")
    messages: list[ChatMessage]
