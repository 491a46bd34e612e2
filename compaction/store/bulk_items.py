"""The items of bulk runs: one session each, from the plan to its end. Feeding and settling are one statement each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Numeric,
    Select,
    Text,
    bindparam,
    case,
    cast,
    exists,
    false,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.bulk import MAX_MISSES, UNDER_WAY, ItemState, Load, expected_load
from compaction.core.jobs import MAX_ATTEMPTS, MAX_JOB_AGE_SECONDS, PRIORITIES
from compaction.store import plain
from compaction.store.bulk_runs import RunRow
from compaction.store.bulk_tables import bulk_items, bulk_runs
from compaction.store.job_rows import status_is
from compaction.store.tables import attempts, jobs, results

_SPENT_NAMES = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
_RESULT = ("strategy", "model", "pre_tokens", "post_tokens", "dropped")  # what an item keeps of its result
UNSENT = (bulk_items.c.state == "batched") & bulk_items.c.batch_id.is_(None)
_AGE = func.make_interval(0, 0, 0, 0, 0, 0, MAX_JOB_AGE_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewItem:
    """A session as the plan found it: to be compacted, or skipped for a reason."""

    session_id: int
    state: ItemState
    reason: str | None
    content_hash: str
    recipe: str
    covers_through_seq: int
    tokens: int
    live_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """An item that was found and not begun, with what it will probably cost live."""

    id: int
    tokens: int
    live_usd: Decimal | None

    @property
    def load(self) -> Load:
        """What it will probably use."""
        return expected_load(self.tokens, self.live_usd)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run stands: its items by state, what is spent, and what those under way will probably use."""

    states: dict[str, int]
    spent: Load
    reserved: Load

    @property
    def under_way(self) -> int:
        """How many items are being worked at."""
        return sum(self.states.get(state, 0) for state in UNDER_WAY)

    @property
    def begun(self) -> int:
        """How many were begun, whatever came of them."""
        return sum(count for state, count in self.states.items() if state not in {"found", "skipped"})


@dataclass(frozen=True, slots=True)
class BulkOrder:
    """What a job that belongs to a run has to know beside its row: which model writes, if the run says so."""

    model: str | None


async def add(conn: AsyncConnection, run: RunRow, items: Sequence[NewItem]) -> None:
    """Stores what a page of the plan found; what is there already stays."""
    if items:
        over = {"ended_at": func.now()}
        rows = [{"run_id": run.id, **asdict(item)} for item in items]
        for group in (
            [row for row in rows if row["state"] == "skipped"],
            [row for row in rows if row["state"] != "skipped"],
        ):
            if group:
                ended = over if group[0]["state"] == "skipped" else {}
                await conn.execute(upsert(bulk_items).values(**ended).on_conflict_do_nothing(), group)


async def standing(conn: AsyncConnection, run: RunRow) -> Standing:
    """The run's items by state, with the sums that its budget is measured by."""
    under_way = bulk_items.c.state.in_(UNDER_WAY)
    counted = (
        select(
            bulk_items.c.state,
            func.count(),
            func.coalesce(func.sum(bulk_items.c.used_tokens), 0),
            func.coalesce(func.sum(bulk_items.c.cost_usd), 0),
            func.coalesce(func.sum(case((under_way, bulk_items.c.tokens))), 0),
            func.coalesce(func.sum(case((under_way, bulk_items.c.live_usd))), 0),
        )
        .where(bulk_items.c.run_id == run.id)
        .group_by(bulk_items.c.state)
    )
    states: dict[str, int] = {}
    spent, reserved = Load(), Load()
    for state, count, used, cost, tokens, dollars in await conn.execute(counted):
        states[state] = count
        spent = spent.plus(Load(int(used), Decimal(cost)))
        if state in UNDER_WAY:
            overhead = expected_load(0, None).tokens * count
            reserved = reserved.plus(Load(int(tokens) + overhead, Decimal(dollars)))
    return Standing(states, spent, reserved)


def session_is_free() -> ColumnElement[bool]:
    """The item's session has no job under way."""
    live = status_is(jobs, "queued", "running", "retrying")
    return ~exists().where(jobs.c.session_id == bulk_items.c.session_id, live)


def may_begin() -> ColumnElement[bool]:
    """The session is free, and no other run works at the same content by the same recipe: it would be paid twice.

    Asked of items that were not begun alone: two that were begun at the same moment must not wait for each other.
    """
    other = bulk_items.alias("other")
    same = [other.c[name] == bulk_items.c[name] for name in ("session_id", "recipe", "content_hash")]
    elsewhere = exists().where(*same, other.c.state.in_(UNDER_WAY), other.c.id != bulk_items.c.id)
    return session_is_free() & ~elsewhere


async def skip_done(conn: AsyncConnection, run: RunRow, limit: int) -> int:
    """Skips what another run has compacted since this one was planned; tells how many."""
    other = bulk_items.alias("other")
    same = [other.c[name] == bulk_items.c[name] for name in ("session_id", "recipe", "content_hash")]
    done = exists().where(
        *same, other.c.state == "succeeded", other.c.run_id != run.id, results.c.job_id == other.c.job_id
    )
    next_ones = (
        select(bulk_items.c.id)
        .where(bulk_items.c.run_id == run.id, bulk_items.c.state == "found")
        .order_by(bulk_items.c.id)
        .limit(limit)
        .scalar_subquery()
    )
    skipped = (
        update(bulk_items)
        .where(bulk_items.c.id.in_(next_ones), done)
        .values(state="skipped", reason="unchanged", ended_at=func.now())
    )
    return (await conn.execute(skipped)).rowcount


async def waiting(conn: AsyncConnection, run: RunRow, limit: int) -> list[Waiting]:
    """The next items that may begin: their session has no job under way."""
    found = (
        select(bulk_items.c.id, bulk_items.c.tokens, bulk_items.c.live_usd)
        .where(
            bulk_items.c.run_id == run.id,
            bulk_items.c.state == "found",
            bulk_items.c.not_before <= func.now(),
            may_begin(),
        )
        .order_by(bulk_items.c.id)
        .limit(limit)
    )
    return [Waiting(*row) for row in await conn.execute(found)]


async def feed(conn: AsyncConnection, run: RunRow, item_ids: Sequence[int]) -> list[str]:
    """Makes the items' jobs, at bulk priority, and tells their ids: items and jobs stand or fall together.

    Items that were not begun, or whose batches have told all that they had to tell.

    A session that somebody else enqueued at this moment is left for later: bulk joins nobody's job.
    """
    picked = (
        select(bulk_items.c.id, bulk_items.c.session_id)
        .where(bulk_items.c.id.in_(item_ids), bulk_items.c.run_id == run.id, (bulk_items.c.state == "found") | UNSENT)
        .with_for_update()
        .cte("picked")
    )
    names, order = job_order(run, picked)
    made = (
        upsert(jobs)
        .from_select(names, order)
        .on_conflict_do_nothing()
        .returning(jobs.c.id, jobs.c.session_id)
        .cte("made")
    )
    fed = (
        update(bulk_items)
        .where(bulk_items.c.id == picked.c.id, made.c.session_id == picked.c.session_id)
        .values(state="queued", job_id=made.c.id, feeds=bulk_items.c.feeds + 1)
        .returning(bulk_items.c.job_id)
    )
    return list((await conn.execute(fed)).scalars())


def job_order(run: RunRow, picked: CTE) -> tuple[list[str], Select[Any]]:
    """The columns of a bulk job and their values, for each `session_id` of `picked`."""
    values: dict[str, ColumnElement[Any]] = {
        "tenant_id": bulk_runs.c.tenant_id,
        "session_id": picked.c.session_id,
        "trigger": literal("bulk", Text),
        "strategy": bulk_runs.c.strategy,
        "instructions": bulk_runs.c.instructions,
        "force": bulk_runs.c.force,
        "metadata": func.jsonb_build_object(literal("bulk_run_id", Text), cast(bulk_runs.c.id, Text)),
        "priority": literal(PRIORITIES["bulk"]),
        "deadline_at": func.now() + _AGE,
        "max_attempts": literal(MAX_ATTEMPTS),
    }
    order = select(*values.values()).select_from(picked).join(bulk_runs, bulk_runs.c.id == run.id)
    return list(values), order


async def settle(conn: AsyncConnection, run: RunRow, limit: int) -> int:
    """Takes over how jobs of the run ended; tells how many. A job that is gone counts as failed.

    An item whose worker was lost is to be begun again; what its batches answered is kept until it ends.
    """
    picked = _ended_jobs(run, limit)
    lost = (picked.c.status == "failed") & (picked.c.code == "worker_lost") & (bulk_items.c.misses < MAX_MISSES - 1)
    state = case(
        (lost & bulk_items.c.answers.is_not(None), "batched"),  # they are paid for: the next job takes them over
        (lost, "found"),
        (picked.c.status.is_(None), "failed"),
        ((picked.c.status == "failed") & picked.c.overdue, "expired"),
        ((picked.c.status == "succeeded") & picked.c.was_compacted.is_(false()), "skipped"),
        else_=picked.c.status,
    )
    failed = picked.c.status.is_(None) | (picked.c.status == "failed")
    told = {name: picked.c[name] for name in ("reason", *_RESULT, "seconds")}
    done = (
        update(bulk_items)
        .where(bulk_items.c.id == picked.c.id)
        .values(
            **told,
            state=state,
            job_id=case((lost, None), else_=bulk_items.c.job_id),
            error_code=case((failed, picked.c.code)),
            content_hash=func.coalesce(picked.c.prefix_hash, bulk_items.c.content_hash),
            covers_through_seq=func.coalesce(picked.c.covers_through_seq, bulk_items.c.covers_through_seq),
            used_tokens=bulk_items.c.used_tokens + picked.c.tokens,
            cost_usd=bulk_items.c.cost_usd + picked.c.dollars,
            misses=bulk_items.c.misses + case((lost, 1), else_=0),
            answers=case((lost, bulk_items.c.answers)),
            ended_at=case((lost, None), else_=func.now()),
        )
    )
    return (await conn.execute(done)).rowcount


def _ended_jobs(run: RunRow, limit: int) -> CTE:
    """The run's items whose jobs have ended, with what came of them and what all their attempts used."""
    ended = status_is(jobs, "succeeded", "failed", "cancelled")
    usage = attempts.c.usage
    used: Any = literal(0, BigInteger)
    for name in _SPENT_NAMES:
        used += func.coalesce(cast(usage[name].astext, BigInteger), 0)
    of_job = attempts.c.job_id == bulk_items.c.job_id
    cost = func.coalesce(cast(usage["cost_usd"].astext, Numeric), 0)
    return (
        select(
            bulk_items.c.id,
            jobs.c.status,
            jobs.c.was_compacted,
            jobs.c.reason,
            func.coalesce(jobs.c.error["code"].astext, literal("internal", Text)).label("code"),
            (jobs.c.ended_at >= jobs.c.deadline_at).label("overdue"),
            func.extract("epoch", jobs.c.ended_at - jobs.c.started_at).label("seconds"),
            *(results.c[name] for name in (*_RESULT, "prefix_hash", "covers_through_seq")),
            select(func.coalesce(func.sum(used), 0)).where(of_job).scalar_subquery().label("tokens"),
            select(func.coalesce(func.sum(cost), 0)).where(of_job).scalar_subquery().label("dollars"),
        )
        .select_from(bulk_items)
        .outerjoin(jobs, jobs.c.id == bulk_items.c.job_id)
        .outerjoin(results, results.c.job_id == bulk_items.c.job_id)
        .where(bulk_items.c.run_id == run.id, bulk_items.c.state == "queued", ended | jobs.c.id.is_(None))
        .limit(limit)
        .cte("picked")
    )


async def close(conn: AsyncConnection, run: RunRow, state: ItemState, reason: str | None = None) -> None:
    """Ends what was found and never begun."""
    await conn.execute(
        update(bulk_items)
        .where(bulk_items.c.run_id == run.id, bulk_items.c.state == "found")
        .values(state=state, reason=reason, ended_at=func.now())
    )


async def under_way_jobs(conn: AsyncConnection, run: RunRow) -> list[str]:
    """The run's own jobs that have not ended; one that a person's request has joined is that person's."""
    found = (
        select(jobs.c.id)
        .join(bulk_items, bulk_items.c.job_id == jobs.c.id)
        .where(
            bulk_items.c.run_id == run.id,
            bulk_items.c.state == "queued",
            jobs.c.trigger == "bulk",
            jobs.c.cancel_requested_at.is_(None),
            status_is(jobs, "queued", "running", "retrying"),
        )
    )
    return list((await conn.execute(found)).scalars())


async def order_of(conn: AsyncConnection, job_id: str) -> BulkOrder | None:
    """The run's words on a job of its own; None for a job of nobody's run."""
    known = plain.job_id(job_id)
    found = (
        select(bulk_runs.c.model)
        .join(bulk_items, bulk_items.c.run_id == bulk_runs.c.id)
        .where(bulk_items.c.job_id == bindparam("b_job_id", type_=bulk_items.c.job_id.type))
    )
    row = (await conn.execute(found, {"b_job_id": known})).one_or_none()
    return None if row is None else BulkOrder(*row)
