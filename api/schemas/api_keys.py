"""API keys: asked for by an admin, shown once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field

from api.schemas.fields import Answer, Name, Request

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


class ApiKey(Answer):
    """A new key. `key` is told this one time; keep it."""

    key: str
    public_id: str
    tenant: str
    scopes: list[Scope]
    expires_at: datetime | None
