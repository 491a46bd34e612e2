"""A bulk run in sums, and its items one by one, for people and reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from sqlalchemy import case, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.bulk import ItemState
from compaction.core.jsonbytes import Json
from compaction.store.bulk_tables import bulk_items
from compaction.store.tables import sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over a run's items. `tokens` and `live_usd` are the plan's estimates of what was not skipped."""

    states: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    failed: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    pre_tokens: int = 0
    post_tokens: int = 0
    used_tokens: int = 0
    live_usd: Decimal | None = Decimal(0)
    cost_usd: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item as it stands."""

    id: int
    session_name: str
    state: ItemState
    reason: str | None
    job_id: str | None
    error_code: str | None
    strategy: str | None
    model: str | None
    tokens: int
    live_usd: Decimal | None
    pre_tokens: int | None
    post_tokens: int | None
    dropped: dict[str, Json] | None
    used_tokens: int
    cost_usd: Decimal
    seconds: float | None
    ended_at: datetime | None


_ITEM = tuple(
    sessions.c.name if name == "session_name" else bulk_items.c[name] for name in ItemRow.__dataclass_fields__
)


async def totals(conn: AsyncConnection, run_ids: Sequence[str]) -> dict[str, Totals]:
    """The sums of each of the runs."""
    items = bulk_items.c
    cause = case((items.state == "skipped", items.reason), else_=items.error_code)
    counted = (
        select(
            items.run_id,
            items.state,
            cause,
            func.count(),
            func.sum(items.tokens),
            func.coalesce(func.sum(items.pre_tokens), 0),
            func.coalesce(func.sum(items.post_tokens), 0),
            func.sum(items.used_tokens),
            case((func.count() == func.count(items.live_usd), func.sum(items.live_usd))),
            func.sum(items.cost_usd),
        )
        .where(items.run_id.in_(run_ids))
        .group_by(items.run_id, items.state, cause)
    )
    made = {run_id: _Sum() for run_id in run_ids}
    for run_id, *group in await conn.execute(counted):
        made[run_id].add(*group)
    return {run_id: one.totals() for run_id, one in made.items()}


async def page(conn: AsyncConnection, run_id: str, after_id: int, limit: int) -> list[ItemRow]:
    """The run's items behind `after_id`, in the order of the plan."""
    wanted = (
        select(*_ITEM)
        .join(sessions, sessions.c.id == bulk_items.c.session_id)
        .where(bulk_items.c.run_id == run_id, bulk_items.c.id > after_id)
        .order_by(bulk_items.c.id)
        .limit(limit)
    )
    return [ItemRow(*row) for row in await conn.execute(wanted)]


class _Sum:
    """Adds up the groups of a run."""

    def __init__(self) -> None:
        self.states: dict[str, int] = {}
        self.causes: dict[str, dict[str, int]] = {"skipped": {}, "failed": {}}
        self.tokens = self.before = self.after = self.used = 0
        self.live_usd: Decimal | None = Decimal(0)
        self.cost_usd = Decimal(0)

    def add(  # noqa: PLR0913, PLR0917 - the columns of a group
        self,
        state: str,
        cause: str | None,
        count: int,
        tokens: int,
        before: int,
        after: int,
        used: int,
        live: Decimal | None,
        cost: Decimal,
    ) -> None:
        """Adds one group."""
        self.states[state] = self.states.get(state, 0) + count
        if state in self.causes and cause is not None:
            self.causes[state][cause] = self.causes[state].get(cause, 0) + count
        self.before += int(before)
        self.after += int(after)
        self.used += int(used)
        self.cost_usd += cost
        if state != "skipped":
            self.tokens += int(tokens)
            self.live_usd = None if live is None or self.live_usd is None else self.live_usd + live

    def totals(self) -> Totals:
        """The sums."""
        return Totals(
            states=self.states,
            skipped=self.causes["skipped"],
            failed=self.causes["failed"],
            tokens=self.tokens,
            pre_tokens=self.before,
            post_tokens=self.after,
            used_tokens=self.used,
            live_usd=self.live_usd,
            cost_usd=self.cost_usd,
        )
