"""A request to compact many sessions anew, and the run that it becomes."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from api.schemas.fields import Answer, Instructions, Name, Request, SessionId
from compaction.core import bulk
from compaction.core.bulk import MAX_SESSION_IDS, EndReason, RunState, Selection, Way
from compaction.core.jobs import StrategyName
from compaction.store.bulk_runs import RunRow
from compaction.store.bulk_totals import Totals

MAX_USD = 1_000_000  # more is a mistake in the unit
MAX_TOKENS = 10**12  # a million sessions of a million tokens
MAX_DAYS = 36_500

RUN_ID = "01a22e26-6a10-7b1c-9c40-2f5e8d1f7a01"
_RUN: dict[str, Any] = {
    "id": RUN_ID,
    "state": "ended",
    "done": True,
    "dry_run": False,
    "way": "live",
    "way_note": None,
    "selection": {"id_prefix": "archive-2026"},
    "model": None,
    "strategy": None,
    "force": False,
    "sample": None,
    "max_usd": 25.0,
    "max_tokens": None,
    "prompt_version": 2,
    "end_reason": "done",
    "created_at": "2026-11-30T20:29:54.895573Z",
    "planned_at": "2026-11-30T20:29:58.112040Z",
    "started_at": "2026-11-30T20:29:58.112040Z",
    "ended_at": "2026-11-30T21:02:11.400218Z",
    "sessions": {"found": 1184, "skipped": 16},
    "skipped": {"unchanged": 12, "nothing_to_compact": 4},
    "failed": {"not_effective": 3},
    "request_counts": {"processing": 0, "succeeded": 1181, "errored": 3, "canceled": 0, "expired": 0},
    "tokens": {"found": 94_720_000, "before": 94_480_000, "after": 8_267_000, "used": 106_900_000},
    "cost": {"live_usd": 18.94, "batched_usd": 9.47, "spent_usd": 18.11},
}

Days = Annotated[float, Field(ge=0, le=MAX_DAYS, allow_inf_nan=False)]
Dollars = Annotated[float, Field(gt=0, le=MAX_USD, allow_inf_nan=False)]


class BulkSelection(Request):
    """Which stored sessions of the tenant; all conditions must hold, and none at all means every session."""

    session_ids: Annotated[list[SessionId], Field(min_length=1, max_length=MAX_SESSION_IDS)] | None = None
    id_prefix: Name | None = Field(default=None, description="Of the session's id")
    idle_days: Days | None = Field(default=None, description="Unchanged for at least so many days")
    changed_within_days: Days | None = None
    model: Name | None = Field(default=None, description="The session's own model")
    min_tokens: Annotated[int, Field(ge=0, le=MAX_TOKENS)] | None = Field(
        default=None, description="By our estimate of what would be compacted"
    )
    last_strategy: StrategyName | None = Field(default=None, description="Of the result that the live view begins with")
    prompt_version_below: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="Last compacted with an older prompt than this, or never"
    )
    breaker: Literal["open", "closed"] | None = None

    def chosen(self) -> Selection:
        """The selection as the run keeps it."""
        ids = None if self.session_ids is None else tuple(self.session_ids)
        return Selection(**(self.model_dump(exclude={"session_ids"}) | {"session_ids": ids}))


class BulkRequest(Request):
    """One order to compact many sessions anew."""

    selection: BulkSelection = BulkSelection()
    dry_run: bool = Field(default=False, description="Plan, and wait for POST …/resume")
    way: Way = "live"
    model: Name | None = Field(default=None, description="Who writes the summaries, instead of the session's model")
    strategy: StrategyName | None = None
    instructions: Instructions | None = None
    force: bool = Field(default=False, description="Also where the breaker is open, or the same order failed before")
    sample: Annotated[int, Field(ge=1, le=MAX_SESSION_IDS)] | None = Field(
        default=None, description="Stop after so many sessions, for a look; POST …/resume does the rest"
    )
    max_usd: Dollars | None = None
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = None

    @property
    def limit_usd(self) -> Decimal | None:
        """The limit as exact money."""
        return None if self.max_usd is None else Decimal(str(self.max_usd))


class BulkSessions(Answer):
    """How many sessions the plan took and left out."""

    found: int
    skipped: int


class RequestCounts(Answer):
    """The sessions of the run by the names of the Message Batches API; skipped ones are not among them."""

    processing: int
    succeeded: int
    errored: int
    canceled: int
    expired: int


class BulkTokens(Answer):
    """`found` by estimate before the run; `before` and `after` of the results so far; `used` by model calls."""

    found: int
    before: int
    after: int
    used: int


class BulkCost(Answer):
    """US dollars. The two estimates are null when the price of a model is unknown."""

    live_usd: float | None
    batched_usd: float | None
    spent_usd: float


class BulkRun(Answer):
    """A run: the plan, then how far it has come."""

    model_config = ConfigDict(frozen=True, json_schema_extra={"examples": [_RUN]})

    id: str
    state: RunState
    done: bool
    dry_run: bool
    way: Way
    way_note: str | None = Field(description="Why it does not go the way that was asked for")
    selection: dict[str, Any]
    model: str | None
    strategy: StrategyName | None
    force: bool
    sample: int | None
    max_usd: float | None
    max_tokens: int | None
    prompt_version: int
    end_reason: EndReason | None
    created_at: datetime
    planned_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    sessions: BulkSessions
    skipped: dict[str, int] = Field(description="Skipped sessions by reason")
    failed: dict[str, int] = Field(description="Failed sessions by error code")
    request_counts: RequestCounts
    tokens: BulkTokens
    cost: BulkCost

    @classmethod
    def of(cls, row: RunRow, totals: Totals) -> BulkRun:
        """The run as clients see it."""
        skipped = totals.states.get("skipped", 0)
        live = None if totals.live_usd is None else float(totals.live_usd)
        return cls(
            id=row.id,
            state=row.state,
            done=row.state == "ended",
            dry_run=row.dry_run,
            way=row.way,
            way_note=row.way_note,
            selection=_told(row.selection),
            model=row.model,
            strategy=row.strategy,
            force=row.force,
            sample=row.sample,
            max_usd=None if row.max_usd is None else float(row.max_usd),
            max_tokens=row.max_tokens,
            prompt_version=row.prompt_version,
            end_reason=row.end_reason,
            created_at=row.created_at,
            planned_at=row.planned_at,
            started_at=row.started_at,
            ended_at=row.ended_at,
            sessions=BulkSessions(found=sum(totals.states.values()) - skipped, skipped=skipped),
            skipped=totals.skipped,
            failed=totals.failed,
            request_counts=RequestCounts(**bulk.request_counts(totals.states)),
            tokens=BulkTokens(
                found=totals.tokens, before=totals.pre_tokens, after=totals.post_tokens, used=totals.used_tokens
            ),
            cost=BulkCost(
                live_usd=live, batched_usd=None if live is None else live / 2, spent_usd=float(totals.cost_usd)
            ),
        )


class BulkPage(Answer):
    """A page of runs, newest first."""

    data: list[BulkRun]
    next_cursor: str | None
    has_more: bool


def _told(selection: dict[str, Any]) -> dict[str, Any]:
    """The selection without what was not asked for; of a list of ids only how many."""
    told = {name: value for name, value in selection.items() if value is not None and name != "session_ids"}
    ids = selection.get("session_ids")
    return told | ({} if ids is None else {"session_ids": len(ids)})
