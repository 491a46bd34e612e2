"""Webhook endpoints of a tenant, and the log of what was sent to them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator

from api.schemas.fields import Answer, Request
from api.schemas.hooks import Secret, Url
from compaction.core.webhooks import (
    DEFAULT_OVERLAP_SECONDS,
    EVENTS,
    MAX_OVERLAP_SECONDS,
    DeliveryStatus,
    DisabledReason,
    Event,
)
from compaction.store.delivery_log import DeliveryRow
from compaction.store.webhooks import EndpointRow
from compaction.webhooks.sender import message_id

Events = Annotated[list[Event], Field(min_length=1, max_length=len(EVENTS))]
_SECRET = "whsec_Y29tcGFjdGQtZXhhbXBsZS1zZWNyZXQh"  # noqa: S105 - an example that opens nothing
_WEBHOOK: dict[str, Any] = {
    "id": "01a22ed6-3bec-7077-b34f-cd1e04fb75d1",
    "url": "https://agents.example.com/news",
    "events": ["compaction.failed", "compaction.succeeded"],
    "enabled": True,
    "disabled_reason": None,
    "failing_since": None,
    "old_secret_until": None,
    "created_at": "2026-11-30T20:29:54.895573Z",
    "updated_at": "2026-11-30T20:29:54.895573Z",
}
_DELIVERY: dict[str, Any] = {
    "id": "01a22ed7-0f10-7273-a87a-f24b1a1fdc46",
    "webhook_id": "msg_01a22ed70f107273a87af24b1a1fdc46",
    "event": "compaction.failed",
    "job_id": "01a22e26-5941-7380-aaa5-3156a0f6644b",
    "status": "pending",
    "attempts": 2,
    "next_attempt_at": "2026-11-30T20:31:02.102000Z",
    "last_error": "http_status",
    "last_status": 503,
    "created_at": "2026-11-30T20:30:21.408216Z",
    "ended_at": None,
}


class WebhookRequest(Request):
    """A new endpoint."""

    url: Url = Field(description="http or https, at a public address unless the operator allows others")
    events: Events = Field(default=list(EVENTS), description="What it hears of; all of them unless said")
    secret: Secret | None = Field(None, description="whsec_ and base64; without it one is drawn at random")


class WebhookChange(Request):
    """What to change; an absent field keeps its value."""

    url: Url | None = None
    events: Events | None = None
    enabled: bool | None = Field(None, description="false: it gets no news, and what waited for it is dropped")

    @model_validator(mode="after")
    def _holds_values(self) -> Self:
        for name in self.model_fields_set:
            if getattr(self, name) is None:
                raise ValueError(f"{name} cannot be taken away")
        return self


class WebhookRotation(Request):
    """How to change to another secret."""

    overlap_seconds: Annotated[int, Field(ge=0, le=MAX_OVERLAP_SECONDS)] = Field(
        DEFAULT_OVERLAP_SECONDS, description="How long the old secret signs beside the new one"
    )
    secret: Secret | None = Field(None, description="The new one; without it one is drawn at random")


class Webhook(Answer):
    """An endpoint, without its secret."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_WEBHOOK]})

    id: str
    url: str
    events: list[Event]
    enabled: bool
    disabled_reason: DisabledReason | None = Field(
        description="owner: switched off by its owner; failing: it only failed for days; gone: it answered 410"
    )
    failing_since: datetime | None = Field(description="The first failure after the last success")
    old_secret_until: datetime | None = Field(description="Until then the secret before the last rotation signs too")
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: EndpointRow) -> Self:
        """The stored endpoint as its owner sees it."""
        return cls.model_validate(row, from_attributes=True)


class NewWebhook(Webhook):
    """An endpoint with a new secret, told this one time; keep it."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_WEBHOOK | {"secret": _SECRET}]})

    secret: str = Field(description="Verifies what is sent, with any library of Standard Webhooks")

    @classmethod
    def told(cls, row: EndpointRow, secret: str) -> NewWebhook:
        """The endpoint with its new secret."""
        return cls(**Webhook.of(row).model_dump(), secret=secret)


class WebhookPage(Answer):
    """A page of endpoints."""

    data: list[Webhook]
    next_cursor: str | None
    has_more: bool


class Delivery(Answer):
    """One piece of news for one endpoint, and what came of it."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_DELIVERY]})

    id: str
    webhook_id: str = Field(description="The header of the same name, equal in each try")
    event: str
    job_id: str | None = Field(description="null for a ping")
    status: DeliveryStatus
    attempts: int
    next_attempt_at: datetime | None
    last_error: str | None = Field(description="Why the last try failed, as a code")
    last_status: int | None = Field(description="The HTTP status that the receiver gave last")
    created_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, row: DeliveryRow) -> Delivery:
        """The stored delivery as its owner sees it."""
        return cls(
            id=row.id,
            webhook_id=message_id(row.id),
            event=row.event,
            job_id=row.job_id,
            status=row.status,
            attempts=row.attempts,
            next_attempt_at=row.not_before if row.status == "pending" else None,
            last_error=row.last_error,
            last_status=row.last_status,
            created_at=row.created_at,
            ended_at=row.ended_at,
        )


class DeliveryPage(Answer):
    """A page of an endpoint's log, newest first."""

    data: list[Delivery]
    next_cursor: str | None
    has_more: bool
