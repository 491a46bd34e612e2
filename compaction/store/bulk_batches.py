"""Batches of a bulk run as rows: intended before the provider hears of them, sent, answered item by item, ended.

Between `intend` and `sent` a crash leaves a row that says what was about to be sent; whoever comes next asks the
provider whether it has such a batch before anything is sent again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Double, case, cast, exists, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction import errors
from compaction.core.bulk import MAX_MISSES, ItemState, Load
from compaction.core.jsonbytes import Json
from compaction.store import bodies
from compaction.store.bulk_items import UNSENT, job_order, may_begin, session_is_free
from compaction.store.bulk_runs import RunRow
from compaction.store.bulk_tables import bulk_batches, bulk_items
from compaction.store.tables import jobs


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item that may go into a batch, or whose answers are to be looked at."""

    id: int
    session_id: int
    covers_through_seq: int
    tokens: int
    live_usd: Decimal | None
    is_found: bool  # and not begun yet
    answers: bytes | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch that has not ended. `age_seconds` counts from its intention."""

    id: int
    state: str
    provider_id: str | None
    requests: int
    created_at: datetime
    adopted: bool  # found by its size, and no answer of it was ours so far
    age_seconds: float


@dataclass(frozen=True, slots=True)
class ItemAnswer:
    """What came of an item's request: its state now, and what its answers are from here on, None to leave them."""

    item_id: int
    feeds: int
    state: ItemState
    answers: bytes | None = field(repr=False)
    error_code: str | None = None
    spent: Load = field(default_factory=Load)
    missed: bool = False  # by what passes


@dataclass(frozen=True, slots=True)
class Asked:
    """An item that waits for a batch: how often it was sent, how often for nothing, and its answers so far (JSON)."""

    feeds: int
    misses: int
    answers: bytes = field(repr=False)


SEARCHED: dict[str, Any] = {"state": "intended", "provider_id": None, "adopted": False, "sent_at": None}


async def candidates(conn: AsyncConnection, run: RunRow, limit: int, *, new: int) -> list[Candidate]:
    """Items to work at, those with answers first, at most `new` that were not begun; of busy sessions none."""
    wanted = (
        select(
            bulk_items.c.id,
            bulk_items.c.session_id,
            bulk_items.c.covers_through_seq,
            bulk_items.c.tokens,
            bulk_items.c.live_usd,
            bulk_items.c.state == "found",
            bulk_items.c.answers,
        )
        .where(bulk_items.c.run_id == run.id, bulk_items.c.not_before <= func.now(), session_is_free())
        .order_by(bulk_items.c.id)
    )
    begun = await conn.execute(wanted.where(UNSENT).limit(limit))
    found = [_candidate(row) for row in begun]
    room = min(new, limit - len(found))
    if room > 0:
        fresh = await conn.execute(wanted.where(bulk_items.c.state == "found", may_begin()).limit(room))
        found += [_candidate(row) for row in fresh]
    return found


async def intend(conn: AsyncConnection, run: RunRow, item_ids: Sequence[int]) -> tuple[int, dict[int, int]]:
    """The batch as an intention: its id, and of each item how often it was sent, this time included.

    Raises errors.Conflict when one of the items is another's by now; then nothing is written.
    """
    values = {"tenant_id": run.tenant_id, "run_id": run.id, "requests": len(item_ids)}
    batch_id: int = (
        await conn.execute(insert(bulk_batches).values(**values).returning(bulk_batches.c.id))
    ).scalar_one()
    taken = (
        update(bulk_items)
        .where(
            bulk_items.c.id.in_(item_ids),
            bulk_items.c.run_id == run.id,
            UNSENT | (bulk_items.c.state == "found"),
        )
        .values(state="batched", batch_id=batch_id, feeds=bulk_items.c.feeds + 1)
        .returning(bulk_items.c.id, bulk_items.c.feeds)
    )
    feeds = {row.id: row.feeds for row in await conn.execute(taken)}
    if len(feeds) < len(item_ids):
        raise errors.Conflict("Another worker has taken items of this batch.")
    return batch_id, feeds


async def sent(conn: AsyncConnection, batch_id: int, provider_id: str) -> bool:
    """The provider has taken the batch. False when the intention was given up meanwhile: then the batch is nobody's.

    Whoever sent it knows whose it is: a row that took it for its own by its size searches on.
    """
    guessed = (bulk_batches.c.state == "sent") & bulk_batches.c.adopted
    others = (bulk_batches.c.provider_id == provider_id, bulk_batches.c.id != batch_id, guessed)
    await conn.execute(update(bulk_batches).where(*others).values(**SEARCHED))
    done = (
        update(bulk_batches)
        .where(bulk_batches.c.id == batch_id, (bulk_batches.c.state == "intended") | guessed)
        .values(state="sent", provider_id=provider_id, adopted=False, sent_at=func.now())
    )
    return (await conn.execute(done)).rowcount == 1


async def give_up(conn: AsyncConnection, batch_id: int, delay_seconds: float, *, code: str | None) -> None:
    """The provider has no such batch: its items go into another. With a `code` it refused, which counts."""
    held = (bulk_batches.c.id == batch_id, bulk_batches.c.state == "intended")
    gone = await conn.execute(update(bulk_batches).where(*held).values(state="void", ended_at=func.now()))
    if not gone.rowcount:
        return
    missed = 1 if code else 0
    last = (bulk_items.c.misses + missed) >= MAX_MISSES
    await conn.execute(
        update(bulk_items)
        .where(bulk_items.c.batch_id == batch_id, bulk_items.c.state == "batched")
        .values(
            batch_id=None,
            misses=bulk_items.c.misses + missed,
            state=case((last, "failed"), else_="batched"),
            answers=case((last, None), else_=bulk_items.c.answers),
            error_code=case((last, code)),
            ended_at=case((last, func.now())),
            not_before=func.now() + func.make_interval(0, 0, 0, 0, 0, 0, delay_seconds),
        )
    )


async def unended(conn: AsyncConnection, run: RunRow) -> list[BatchRow]:
    """The run's batches that are intended or sent, oldest first."""
    age = cast(func.extract("epoch", func.now() - bulk_batches.c.created_at), Double)
    names = [name for name in BatchRow.__dataclass_fields__ if name != "age_seconds"]
    columns: list[ColumnElement[Any]] = [*(bulk_batches.c[name] for name in names), age]
    wanted = (
        select(*columns)
        .where(bulk_batches.c.run_id == run.id, bulk_batches.c.state.in_(("intended", "sent")))
        .order_by(bulk_batches.c.id)
    )
    return [BatchRow(*row) for row in await conn.execute(wanted)]


async def asked_of(conn: AsyncConnection, batch_id: int, item_ids: Sequence[int]) -> dict[int, Asked]:
    """The items that still wait for this batch."""
    wanted = select(bulk_items.c.id, bulk_items.c.feeds, bulk_items.c.misses, bulk_items.c.answers).where(
        bulk_items.c.id.in_(item_ids), bulk_items.c.batch_id == batch_id, bulk_items.c.state == "batched"
    )
    return {
        row.id: Asked(row.feeds, row.misses, b"[]" if row.answers is None else bodies.unpack(row.answers))
        for row in await conn.execute(wanted)
    }


async def waits_for(conn: AsyncConnection, batch_id: int) -> bool:
    """Whether an item still waits for this batch."""
    waits = exists().where(bulk_items.c.batch_id == batch_id, bulk_items.c.state == "batched")
    return bool((await conn.execute(select(waits))).scalar_one())


async def take_over(conn: AsyncConnection, batch_id: int, answers: Sequence[ItemAnswer]) -> None:
    """Writes what came of requests; an item that does not wait for them any more stays as it is.

    Answers are kept while they may be needed, and no longer: they hold words of the session.
    """
    if answers:
        await conn.execute(update(bulk_batches).where(bulk_batches.c.id == batch_id).values(adopted=False))
    for one in answers:
        over = one.state != "batched"
        if over:
            kept: dict[str, bytes | None] = {"answers": None}
        else:
            kept = {} if one.answers is None else {"answers": bodies.pack(one.answers)}
        await conn.execute(
            update(bulk_items)
            .where(
                bulk_items.c.id == one.item_id,
                bulk_items.c.batch_id == batch_id,
                bulk_items.c.feeds == one.feeds,
                bulk_items.c.state == "batched",
            )
            .values(
                **kept,
                state=one.state,
                batch_id=None,
                misses=bulk_items.c.misses + int(one.missed),
                error_code=one.error_code,
                used_tokens=bulk_items.c.used_tokens + one.spent.tokens,
                cost_usd=bulk_items.c.cost_usd + one.spent.usd,
                ended_at=func.now() if over else None,
            )
        )


async def end(conn: AsyncConnection, batch_id: int, counts: Mapping[str, Json]) -> None:
    """All answers are taken over; an item of which nobody spoke goes into another batch."""
    await conn.execute(
        update(bulk_batches)
        .where(bulk_batches.c.id == batch_id)
        .values(state="ended", counts=dict(counts), ended_at=func.now())
    )
    await conn.execute(
        update(bulk_items)
        .where(bulk_items.c.batch_id == batch_id, bulk_items.c.state == "batched")
        .values(batch_id=None)
    )


async def leave(conn: AsyncConnection, run: RunRow, max_age_seconds: float) -> bool:
    """Where nobody can ask for batches: what waits for none is to be begun anew; whether nothing waits any more.

    What is with the provider is paid for and stays until another worker asks for it, or the batch is too old.
    """
    late = bulk_batches.c.created_at <= func.now() - func.make_interval(0, 0, 0, 0, 0, 0, max_age_seconds)
    old = (
        update(bulk_batches)
        .where(bulk_batches.c.run_id == run.id, bulk_batches.c.state.in_(("intended", "sent")), late)
        .values(state="void", ended_at=func.now())
        .returning(bulk_batches.c.id)
    )
    gone = list((await conn.execute(old)).scalars())
    over = update(bulk_items).where(bulk_items.c.batch_id.in_(gone), bulk_items.c.state == "batched")
    await conn.execute(over.values(state="expired", batch_id=None, answers=None, ended_at=func.now()))
    again = update(bulk_items).where(bulk_items.c.run_id == run.id, UNSENT)
    await conn.execute(again.values(state="found", answers=None))
    return not await unended(conn, run)


async def close_unsent(conn: AsyncConnection, run: RunRow) -> None:
    """Cancels the items that wait for no batch."""
    over = update(bulk_items).where(bulk_items.c.run_id == run.id, UNSENT)
    await conn.execute(over.values(state="cancelled", answers=None, ended_at=func.now()))


async def fail(conn: AsyncConnection, run: RunRow, item_id: int, code: str) -> None:
    """The item ends without a job: what its requests brought is no summary, and asking again is over."""
    ours = (bulk_items.c.id == item_id, bulk_items.c.run_id == run.id, UNSENT | (bulk_items.c.state == "found"))
    over = update(bulk_items).where(*ours)
    await conn.execute(over.values(state="failed", error_code=code, answers=None, ended_at=func.now()))


async def feed_paid(conn: AsyncConnection, run: RunRow, item: Candidate, paid: bytes) -> str | None:
    """Makes the item's job, with its summary paid for already; None while its session has a waiting job."""
    ours = select(bulk_items.c.session_id).where(bulk_items.c.id == item.id, bulk_items.c.run_id == run.id, UNSENT)
    picked = ours.with_for_update().cte("picked")
    names, order = job_order(run, picked)
    given = order.add_columns(literal(bodies.pack(paid)), literal(item.covers_through_seq, BigInteger))
    made = upsert(jobs).from_select([*names, "paid_summary", "covers_through_seq"], given).on_conflict_do_nothing()
    job_id: str | None = (await conn.execute(made.returning(jobs.c.id))).scalar_one_or_none()
    if job_id is not None:
        fed = update(bulk_items).where(bulk_items.c.id == item.id)
        await conn.execute(fed.values(state="queued", job_id=job_id))
    return job_id


def _candidate(row: Any) -> Candidate:  # noqa: ANN401 - a row of `candidates`
    found = Candidate(*row)
    return found if found.answers is None else dataclasses.replace(found, answers=bodies.unpack(found.answers))
