"""A session's circuit breaker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from pydantic import Field

from api.schemas.fields import Answer, PageQuery
from compaction.core.breaker import BreakerState, phase


class Breaker(Answer):
    """After three failed automatic compactions in a row it opens, and automatic jobs of the session are skipped."""

    session_id: str
    state: Literal["closed", "open", "half_open"]
    failures: int = Field(description="Failed automatic compactions in a row")
    opened_at: datetime | None
    last_error_code: str | None

    @classmethod
    def of(cls, session_id: str, stored: BreakerState, cooldown_seconds: float | None) -> Breaker:
        """The breaker as clients see it, now."""
        return cls(
            session_id=session_id,
            state=phase(stored, datetime.now(UTC), cooldown_seconds),
            failures=stored.failures,
            opened_at=stored.opened_at,
            last_error_code=stored.last_error_code,
        )


class BreakerQuery(PageQuery):
    """Which breakers to list."""

    state: Literal["open"] = "open"


class BreakerPage(Answer):
    """A page of breakers."""

    data: list[Breaker]
    next_cursor: str | None
    has_more: bool
