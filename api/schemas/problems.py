"""Problem documents (RFC 9457)."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from api.schemas.fields import Answer


class WrongField(Answer):
    """One place in the request and what must stand there."""

    path: str
    problem: str


_PROBLEM: dict[str, Any] = {
    "type": "urn:compactd:problem:invalid_request",
    "title": "Unprocessable Entity",
    "status": 422,
    "code": "invalid_request",
    "detail": "The body has wrong fields; see `errors`.",
    "request_id": "0f4a5d6c2f6e4d3f9d1f6f2b7c1d9e10",
    "errors": [{"path": "messages[3].content", "problem": "must be a string or a list of blocks"}],
}


class Problem(Answer):
    """Why a call was refused. `code` is stable; `request_id` finds the log line."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_PROBLEM]})

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str | None
    errors: list[WrongField] = Field(default_factory=list)
