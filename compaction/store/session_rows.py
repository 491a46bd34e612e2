"""A session's row as the other rooms see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import case, null

from compaction.core.jsonbytes import Json
from compaction.store.tables import sessions


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session without its messages. `id` is ours, `name` the producer's; seqs count messages from 1, 0 is none."""

    id: int
    tenant_id: int
    name: str
    model: str
    query_source: str | None
    settings: dict[str, Json]
    head_seq: int  # the newest message
    boundary_seq: int  # the newest stored boundary or summary
    live_job_id: str | None  # whose result the live view begins with, unless a newer boundary was stored
    created_at: datetime
    updated_at: datetime
    is_ephemeral: bool = False  # an inline job's own: nobody reaches it by name, and it goes with its jobs


PRODUCERS_NAME = case((sessions.c.is_ephemeral, null()), else_=sessions.c.name)  # None: the producer named none
COLUMNS = tuple(sessions.c[name] for name in SessionRow.__dataclass_fields__)
