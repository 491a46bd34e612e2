"""A session's results as versions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from api.schemas.examples import AT, JOB_ID, SESSION_ID
from api.schemas.fields import Answer, Request
from compaction.store.versions import Version

_VERSION: dict[str, Any] = {
    "job_id": JOB_ID,
    "is_current": True,
    "trigger": "bulk",
    "strategy": "fresh",
    "model": "claude-haiku-5-5",
    "prompt_version": 2,
    "pre_tokens": 170_896,
    "post_tokens": 5_213,
    "cost_usd": 0.0176,
    "covers_through_seq": 412,
    "created_at": AT,
}


class SessionVersion(Answer):
    """One result of a session; `is_current` is the one that its live view begins with."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_VERSION]})

    job_id: str
    is_current: bool
    trigger: str
    strategy: str
    model: str | None
    prompt_version: int | None = Field(description="null: made before it was kept")
    pre_tokens: int
    post_tokens: int
    cost_usd: float | None
    covers_through_seq: int
    created_at: datetime

    @classmethod
    def of(cls, version: Version, current: str | None) -> SessionVersion:
        """The version as clients see it."""
        dollars = None if version.cost_usd is None else float(version.cost_usd)
        told = {name: getattr(version, name) for name in Version.__dataclass_fields__ if name != "cost_usd"}
        return cls(**told, cost_usd=dollars, is_current=version.job_id == current)


class SessionVersions(Answer):
    """All results of a session, newest first; `current` is null where the live view is as the producer stored it."""

    model_config = ConfigDict(
        frozen=True, json_schema_extra={"examples": [{"session_id": SESSION_ID, "current": JOB_ID, "data": [_VERSION]}]}
    )

    session_id: str
    current: str | None
    data: list[SessionVersion]


class VersionChoice(Request):
    """Which result the live view begins with: the job that made it, or null for none."""

    job_id: Annotated[str, Field(max_length=100)] | None
