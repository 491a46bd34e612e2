"""API keys: asked for by an admin, shown once, listed without what is secret."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field

from api.schemas.fields import Answer, Name, Request
from compaction.store.keys import KeyRow

DEFAULT_GRACE_SECONDS = 86_400  # a day: long enough to roll a new key out over a fleet
MAX_GRACE_SECONDS = 30 * 86_400
Scope = Literal["sessions:write", "jobs:write", "read", "ops", "admin"]


def _ahead(moment: datetime) -> datetime:
    if moment <= datetime.now(UTC):
        raise ValueError("must be in the future")
    return moment


FutureDatetime = Annotated[AwareDatetime, AfterValidator(_ahead)]


class ApiKeyRequest(Request):
    """A new key; a tenant comes into being with its first one."""

    tenant: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=10)]
    expires_at: FutureDatetime | None = None


class ApiKeyRotation(Request):
    """How to replace a key by a new one of the same scopes."""

    grace_seconds: Annotated[int, Field(ge=0, le=MAX_GRACE_SECONDS)] = Field(
        DEFAULT_GRACE_SECONDS, description="How long the old key works beside the new one"
    )
    expires_at: FutureDatetime | None = Field(None, description="Of the new key; absent: as the old one")


class ApiKey(Answer):
    """A new key. `key` is told this one time; keep it."""

    key: str
    public_id: str
    tenant: str
    scopes: list[Scope]
    expires_at: datetime | None


class StoredApiKey(Answer):
    """A key as it is stored: nothing in it opens anything."""

    public_id: str
    scopes: list[Scope]
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = Field(description="Right to the minute")
    revoked_at: datetime | None = Field(description="From then on it opens nothing; to come while it is rotated")

    @classmethod
    def of(cls, row: KeyRow) -> StoredApiKey:
        """The stored key as admins see it."""
        return cls.model_validate(row, from_attributes=True)


class ApiKeyPage(Answer):
    """A page of keys."""

    data: list[StoredApiKey]
    next_cursor: str | None
    has_more: bool
