"""Words for store tests of bulk runs: a running run over one session of the stage, and what is done with its item."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from compaction.store import bulk_batches, bulk_items, bulk_runs
from compaction.store.bulk_items import NewItem
from compaction.store.bulk_runs import NewRun, RunRow
from compaction.store.sessions import SessionRow
from tests.integration.store.stage import Stage


@dataclass
class Run:
    """A running run over one new session of the stage."""

    stage: Stage
    row: RunRow
    session: SessionRow
    item_id: int

    async def state(self) -> dict[str, Any]:
        names = (
            "state",
            "reason",
            "error_code",
            "used_tokens",
            "cost_usd",
            "feeds",
            "job_id",
            "content_hash",
            "batch_id",
            "answers",
        )
        sql = f"SELECT {', '.join(names)} FROM bulk_items WHERE id = %s"  # noqa: S608 - our own names
        (row,) = await self.stage.query(sql, self.item_id)
        return dict(zip(names, row, strict=True))

    async def feed(self) -> list[str]:
        async with self.stage.database.begin() as conn:
            return await bulk_items.feed(conn, self.row, [self.item_id])

    async def settle(self) -> int:
        async with self.stage.database.begin() as conn:
            return await bulk_items.settle(conn, self.row, 10)

    async def intend(self) -> int:
        async with self.stage.database.begin() as conn:
            batch_id, _ = await bulk_batches.intend(conn, self.row, [self.item_id])
        return batch_id


def found(session: SessionRow, content_hash: str = "hash") -> NewItem:
    return NewItem(
        session_id=session.id,
        state="found",
        reason=None,
        content_hash=content_hash,
        recipe="recipe",
        covers_through_seq=3,
        tokens=1_000,
        live_usd=Decimal("0.5"),
    )


async def running(stage: Stage, session: SessionRow | None = None, **wanted: Any) -> Run:  # noqa: ANN401 - any field
    session = session or await stage.session(3)
    async with stage.database.begin() as conn:
        row = await bulk_runs.create(conn, NewRun(tenant_id=stage.tenant_id, selection={}, **wanted))
        await bulk_items.add(conn, row, [found(session)])
        await bulk_runs.planned(conn, row, row.way, None)
    ((item_id,),) = await stage.query("SELECT id FROM bulk_items WHERE run_id = %s", row.id)
    return Run(stage, row, session, item_id)
