"""Batches found again after a crash: taken by their size at first, and given to whom their answers name.

The provider tells of a batch no more than its size until it has ended; the names in its answers say whose it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import func, insert, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store.bulk_batches import SEARCHED, BatchRow
from compaction.store.bulk_runs import RunRow
from compaction.store.bulk_tables import bulk_batches, bulk_items


async def known(conn: AsyncConnection, run: RunRow, provider_ids: Sequence[str]) -> set[str]:
    """Those of the provider's batches that are some run's already, or that this run has seen to be a stranger's."""
    hides = (bulk_batches.c.state != "void") | (bulk_batches.c.run_id == run.id)
    wanted = select(bulk_batches.c.provider_id).where(bulk_batches.c.provider_id.in_(provider_ids), hides)
    return set((await conn.execute(wanted)).scalars())


async def adopt(conn: AsyncConnection, batch_id: int, provider_id: str) -> bool:
    """Takes a batch for the one that was intended, until its answers say otherwise. False when that has been sent."""
    done = (
        update(bulk_batches)
        .where(bulk_batches.c.id == batch_id, bulk_batches.c.state == "intended")
        .values(state="sent", provider_id=provider_id, adopted=True, sent_at=func.now())
    )
    return (await conn.execute(done)).rowcount == 1


async def hand_over(
    conn: AsyncConnection, batch: BatchRow, provider_id: str, places: Collection[tuple[int, int]]
) -> bool:
    """Gives an adopted batch to the row whose items, as (id, sending), it names; both search anew for what they lack.

    False when none of our rows waits for it: then it is a stranger's.
    """
    item = tuple_(bulk_items.c.id, bulk_items.c.feeds)
    wanted = (
        select(bulk_batches.c.id)
        .join(bulk_items, bulk_items.c.batch_id == bulk_batches.c.id)
        .where(
            item.in_(list(places)),
            bulk_items.c.state == "batched",
            bulk_batches.c.id != batch.id,
            (bulk_batches.c.state == "intended") | ((bulk_batches.c.state == "sent") & bulk_batches.c.adopted),
        )
        .limit(1)
    )
    owner: int | None = (await conn.execute(wanted)).scalar_one_or_none()
    if owner is None:
        return False
    await conn.execute(update(bulk_batches).where(bulk_batches.c.id == batch.id).values(**SEARCHED))
    given = update(bulk_batches).where(bulk_batches.c.id == owner)
    await conn.execute(given.values(state="sent", provider_id=provider_id, adopted=True, sent_at=func.now()))
    return True


async def replace(conn: AsyncConnection, batch: BatchRow) -> None:
    """What was taken for this batch is a stranger's: its name stays with the void row, and the search goes on."""
    moved = insert(bulk_batches).from_select(
        ["tenant_id", "run_id", "requests", "created_at"],
        select(
            bulk_batches.c.tenant_id, bulk_batches.c.run_id, bulk_batches.c.requests, bulk_batches.c.created_at
        ).where(bulk_batches.c.id == batch.id),
    )
    again: int = (await conn.execute(moved.returning(bulk_batches.c.id))).scalar_one()
    await conn.execute(update(bulk_items).where(bulk_items.c.batch_id == batch.id).values(batch_id=again))
    await conn.execute(
        update(bulk_batches).where(bulk_batches.c.id == batch.id).values(state="void", ended_at=func.now())
    )
