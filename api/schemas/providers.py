"""The model's API as the workers see it."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from api.schemas.fields import Answer
from compaction.core.pausing import Phase
from compaction.store.pauses import PauseRow


class Provider(Answer):
    """One credential that was ever paused. While it is paused, jobs of workers that use it wait and make no call."""

    name: str = Field(description="The summarizer and a fingerprint of its credential")
    state: Phase = Field(description="open; paused; trial: one job at a time tries whether it works again")
    reason: str | None = Field(description="The error code that paused it last")
    trips: int = Field(description="Pauses in a row without an answered call between them")
    failed_probes: int = Field(description="Probes of this pause that failed")
    next_probe_at: datetime | None
    paused_at: datetime | None
    changed_at: datetime

    @classmethod
    def of(cls, row: PauseRow) -> Provider:
        """The provider as operators see it."""
        return cls(
            name=row.provider,
            state=row.phase,
            reason=row.reason,
            trips=row.trips,
            failed_probes=row.probes,
            next_probe_at=row.probe_at if row.phase == "paused" else None,
            paused_at=row.paused_at,
            changed_at=row.changed_at,
        )


class ProviderList(Answer):
    """All of them."""

    data: list[Provider]
