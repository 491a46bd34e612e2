"""The analysis of what fills a session's window."""

from __future__ import annotations

from pydantic import Field

from api.schemas.fields import Answer


class KindShare(Answer):
    """One part of the whole: user, assistant, requests, results, thinking, media, summary, and so on."""

    kind: str
    tokens: int
    percent: float


class RoleShare(Answer):
    """The messages of one role."""

    messages: int
    tokens: int


class ToolUse(Answer):
    """The calls of one tool and their results."""

    name: str
    requests: int
    request_tokens: int
    results: int
    result_tokens: int
    tokens: int
    percent: float


class RepeatedRead(Answer):
    """A file of which the same part was read more than once."""

    path: str
    reads: int
    wasted_tokens: int


class Context(Answer):
    """What the live view is made of. `tokens` counts the next request; the parts are estimates of its pieces."""

    session_id: str
    window: int
    tokens: int
    anchored: bool = Field(description="Stands on the usage of the last answer; false: estimated as a whole")
    percent_of_window: float
    estimated_tokens: int
    kinds: list[KindShare]
    roles: dict[str, RoleShare]
    tools: list[ToolUse] = Field(description="By tokens, largest first")
    repeated_reads: list[RepeatedRead]
    wasted_tokens: int
