"""The items of a bulk run, read page by page, and what they come to."""

from __future__ import annotations

from collections.abc import AsyncIterator

from api.bulk_lines import outcome
from api.services import Services
from compaction.core.bulk_report import BulkReport, Gathering
from compaction.store import bulk_totals
from compaction.store.bulk_runs import RunRow
from compaction.store.bulk_totals import ItemRow

ITEMS_AT_ONCE = 500  # rows of one query of a long list of results


async def items(held: Services, run_id: str) -> AsyncIterator[ItemRow]:
    """The run's items in the order of the plan."""
    after_id = 0
    while True:
        async with held.database.connect() as conn:
            rows = await bulk_totals.page(conn, run_id, after_id, ITEMS_AT_ONCE)
        for row in rows:
            yield row
        if len(rows) < ITEMS_AT_ONCE:
            return
        after_id = rows[-1].id


async def report(held: Services, row: RunRow) -> BulkReport:
    """The run in figures."""
    gathering = Gathering()
    async for item in items(held, row.id):
        gathering.add(outcome(item, row.way))
    return gathering.report()
