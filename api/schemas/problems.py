"""Problem documents (RFC 9457)."""

from __future__ import annotations

from pydantic import Field

from api.schemas.fields import Answer


class WrongField(Answer):
    """One place in the request and what must stand there."""

    path: str
    problem: str


class Problem(Answer):
    """Why a call was refused. `code` is stable; `request_id` finds the log line."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str | None
    errors: list[WrongField] = Field(default_factory=list)
