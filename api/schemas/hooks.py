"""HTTP hooks of a tenant."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from api.schemas.fields import Answer, Request, Text
from compaction.core.hooks import DEFAULT_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS, MIN_TIMEOUT_SECONDS, Event
from compaction.hooks.guarded import MAX_URL_CHARS
from compaction.hooks.signing import MAX_SECRET_BYTES, MIN_SECRET_BYTES, is_secret
from compaction.store.hooks import HookRow

MAX_SECRET_CHARS = 200  # whsec_ and 64 bytes in base64 have 94


def _secret(text: str) -> str:
    if not is_secret(text):
        raise ValueError(f"must be whsec_ and {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} random bytes in base64")
    return text


Url = Annotated[Text, StringConstraints(min_length=1, max_length=MAX_URL_CHARS)]
Secret = Annotated[Text, StringConstraints(max_length=MAX_SECRET_CHARS), AfterValidator(_secret)]
Timeout = Annotated[float, Field(ge=MIN_TIMEOUT_SECONDS, le=MAX_TIMEOUT_SECONDS, allow_inf_nan=False)]


class HookRequest(Request):
    """A new hook: asked at `event` of each of the tenant's compactions."""

    event: Event
    url: Url = Field(description="http or https, at a public address unless the operator allows others")
    secret: Secret = Field(
        description="Signs each call as Standard Webhooks does; whsec_ and base64. Never shown again"
    )
    timeout_s: Timeout = Field(default=DEFAULT_TIMEOUT_SECONDS, description="How long an answer may take, in seconds")


class Hook(Answer):
    """A hook, without its secret."""

    id: str
    event: Event
    url: str
    timeout_s: float
    enabled: bool
    created_at: datetime

    @classmethod
    def of(cls, row: HookRow) -> Hook:
        """The stored hook as clients see it."""
        return cls(
            id=row.id,
            event=row.event,
            url=row.url,
            timeout_s=row.timeout_seconds,
            enabled=row.enabled,
            created_at=row.created_at,
        )


class HookPage(Answer):
    """A page of hooks."""

    data: list[Hook]
    next_cursor: str | None
    has_more: bool
