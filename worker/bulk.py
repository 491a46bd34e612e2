"""Bulk runs at work: while this worker leads, it plans them, feeds the queue from them and takes over how jobs ended.

Each step is one transaction that holds its run's row, so that a worker may die anywhere: the next leader finds the run
where the last step left it, and two leaders at once take turns.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from compaction import telemetry
from compaction.core import bulk
from compaction.core.bulk import Load
from compaction.errors import CompactdError
from compaction.store import bulk_batches, bulk_items, bulk_runs, jobs
from compaction.store.bulk_items import Standing
from compaction.store.bulk_runs import RunRow
from compaction.store.engine import Connection, Database
from compaction.summarizers.models import BATCH_FACTOR
from worker.batcher import Batcher
from worker.bulk_plan import Planner

WINDOW = 64  # items of one run in the queue at a time: what bulk's share of 200 slots takes, and few to cancel
LOOKED_AT_ONCE = 1_000  # of the next items: has another run done them meanwhile?
SETTLED_AT_ONCE = 500  # rows of one statement
TURN_SECONDS = 5.0  # a turn of the reconciler: so long do runs that are busy keep others from being taken up
BATCH_AGE_SECONDS = 25 * 3600.0  # facts/anthropic.md §4: a batch expires after 24 hours; and one for clocks that differ
LEFT = "The summarizer here has no batches any more; the run goes live."
LEFT_LATER = (
    "The summarizer here has no batches any more; the run goes live when those that were sent have ended: start a "
    "worker with the API key that sent them to take over their answers, or wait until they have expired."
)

_log = telemetry.logger("bulk")


class Waker(Protocol):
    """Has the leading worker look at what waits."""

    async def wake(self) -> bool:
        """Whether it was sent; never raises."""
        ...


class Conductor:
    """Woken by the reconciler's turns; in between it goes on by itself while there is something to do."""

    def __init__(self, database: Database, planner: Planner, waker: Waker, batcher: Batcher | None = None) -> None:
        self._database = database
        self._batcher = batcher
        self._planner = planner
        self._waker = waker
        self._round: asyncio.Task[None] | None = None

    def turn(self) -> None:
        """Has the runs moved on; returns at once."""
        if self._round is None or self._round.done():
            self._round = asyncio.create_task(self.move_on(), name="bulk conductor")

    async def move_on(self) -> None:
        """Steps through runs until those taken up have nothing to do at this moment; while they have, others follow."""
        while run_ids := await self._taken_up():
            until = time.monotonic() + TURN_SECONDS
            while run_ids and time.monotonic() < until:
                run_ids = [run_id for run_id in run_ids if await self._stepped(run_id)]
            if not run_ids:
                return

    async def _taken_up(self) -> list[str]:
        try:
            async with self._database.begin() as conn:
                return await bulk_runs.take_up(conn)
        except CompactdError as error:
            _log.warning("bulk.missed", code=error.code)
            return []

    async def _stepped(self, run_id: str) -> bool:
        """One step of a run; whether another may follow at once. A run that cannot move does not stop the others."""
        try:
            return await self._step(run_id)
        except CompactdError as error:
            _log.warning("bulk.missed", run_id=run_id, code=error.code)
        except Exception as error:  # noqa: BLE001 - the next turn tries again
            _log.error("bulk.fault", run_id=run_id, **telemetry.failure(error))
        return False

    async def _step(self, run_id: str) -> bool:
        async with self._database.begin() as conn:
            run = await bulk_runs.take(conn, run_id)
            if run is None:
                return False
            if run.state == "planning":
                await self._planner.step(conn, run)
                return True
            settled = await bulk_items.settle(conn, run, SETTLED_AT_ONCE)
            if run.way == "message_batches" and self._batcher is None and run.state != "ended":
                return await _leave_batches(conn, run)
            moved = await self._work(conn, run)
        if run.way == "message_batches" and self._batcher is not None and run.state != "ended":
            moved |= await self._batcher.step(run)
        if moved:
            await self._waker.wake()
        return moved or settled > 0

    async def _work(self, conn: Connection, run: RunRow) -> bool:
        """What the run's state asks for; whether jobs were made."""
        if run.state == "cancelling":
            await _cancel(conn, run)
        elif run.state == "running":
            return await _feed(conn, run)
        return False


async def _leave_batches(conn: Connection, run: RunRow) -> bool:
    """The run was planned where there are batches, and this worker's summarizer has none: it goes live, and says so."""
    goes_live = await bulk_batches.leave(conn, run, BATCH_AGE_SECONDS)
    if run.state == "cancelling":
        await _cancel(conn, run)
        return False
    await bulk_runs.re_routed(conn, run, "live" if goes_live else run.way, LEFT if goes_live else LEFT_LATER)
    if goes_live:
        _log.warning("bulk.goes_live", run_id=run.id)
    return goes_live


async def _cancel(conn: Connection, run: RunRow) -> None:
    await bulk_items.close(conn, run, "cancelled")
    await bulk_batches.close_unsent(conn, run)
    for job_id in await bulk_items.under_way_jobs(conn, run):
        await jobs.cancel(conn, run.tenant_id, job_id)
    if not (await bulk_items.standing(conn, run)).under_way:
        await bulk_runs.end(conn, run, "cancelled")
        _log.info("bulk.ended", run_id=run.id, reason="cancelled")


async def _feed(conn: Connection, run: RunRow) -> bool:
    """Gives the queue as many items as window, sample and budget allow; ends the run when nothing is left."""
    if await bulk_items.skip_done(conn, run, LOOKED_AT_ONCE):
        return True
    standing = await bulk_items.standing(conn, run)
    room = WINDOW - standing.under_way
    if run.sample is not None:
        room = min(room, run.sample - standing.begun)
    candidates = await bulk_items.waiting(conn, run, room) if room > 0 else []
    factor = 1 if run.way == "live" else BATCH_FACTOR
    loads = (Load(item.load.tokens, item.load.usd * factor) for item in candidates)
    count, limit = bulk.affordable(run.budget, standing.spent.plus(standing.reserved), loads)
    live = count if run.way == "live" else 0  # batches are filled outside of this transaction
    fed = await bulk_items.feed(conn, run, [item.id for item in candidates[:live]]) if live else []
    if not fed and not standing.under_way:
        await _rest(conn, run, standing, None if count else limit)
    return bool(fed)


async def _rest(conn: Connection, run: RunRow, standing: Standing, limit: bulk.EndReason | None) -> None:
    """Nothing is under way and nothing was begun: the run is done, out of budget, at its sample's end, or waits."""
    if not standing.states.get("found"):
        await _end(conn, run, "done")
    elif limit is not None:
        await bulk_items.close(conn, run, "skipped", limit)
        await _end(conn, run, limit)
    elif run.sample is not None and standing.begun >= run.sample:
        await bulk_runs.sampled(conn, run)
        _log.info("bulk.sampled", run_id=run.id)


async def _end(conn: Connection, run: RunRow, reason: bulk.EndReason) -> None:
    await bulk_runs.end(conn, run, reason)
    _log.info("bulk.ended", run_id=run.id, reason=reason)
