"""Dispatch: each turn of the leader rings for the jobs that are next, no more than there will soon be slots for.

Few rings lie in Redis at a time, so that priority, fairness and cancellation are decided late, in Postgres.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from compaction.core import fairness
from compaction.core.fairness import InFlight, Room
from compaction.store import jobs as job_rows
from compaction.store import workers as worker_rows
from compaction.store.engine import Database
from compaction.store.jobs import View
from compaction.store.workers import Capacity
from worker import metrics

QUICK_SECONDS = 3.0  # no ring lies in Redis: what was rung for so long ago and is not claimed was not heard


class Bell(Protocol):
    """Where the rings go."""

    async def ring_all(self, job_ids: Sequence[str]) -> bool:
        """Rings for the jobs in their order; never raises."""
        ...

    async def depth(self) -> int | None:
        """How many rings nobody has heard yet; None when nobody can tell."""
        ...


class Dispatcher:
    """Rings for what is next; `tenant_jobs` is the most that one tenant may have in flight."""

    def __init__(
        self,
        *,
        database: Database,
        doorbell: Bell,
        redispatch_seconds: float,
        lease_seconds: float,
        tenant_jobs: int | None = None,
    ) -> None:
        self._database = database
        self._doorbell = doorbell
        self._redispatch_seconds = redispatch_seconds
        self._lease_seconds = lease_seconds
        self._tenant_jobs = tenant_jobs
        self._after_tenant_id = 0
        self.broker_length: int | None = None  # of rings that nobody had heard at the last turn; None: nobody knows

    async def turn(self) -> bool:
        """Rings for what is next; whether more jobs wait for slots."""
        out = self.broker_length = await self._doorbell.depth()
        if out is None:
            return False  # nobody would hear
        capacity, running, free = await self._room(out)
        silent_seconds = self._redispatch_seconds if out else min(self._redispatch_seconds, QUICK_SECONDS)
        async with self._database.begin() as conn:
            view = await job_rows.look(conn, free, silent_seconds, after_tenant_id=self._after_tenant_id)
            room = Room(jobs=free, bulk=_bulk(capacity, running, out, view), tenant_jobs=self._tenant_jobs)
            picked = fairness.pick(view.candidates, running, room)
            marked = await job_rows.mark(conn, picked, silent_seconds)
        self._after_tenant_id = view.next_tenant_id
        if marked:
            metrics.RINGS.inc(len(marked))
            await self._doorbell.ring_all(marked)
        return bool(view.candidates) or (free == 0 and capacity.slots > 0)

    async def _room(self, out: int) -> tuple[Capacity, InFlight, int]:
        """What the workers can take, what runs, and how many rings may go out. A provider on trial gets one job."""
        async with self._database.connect() as conn:
            capacity = await worker_rows.capacity(conn, self._lease_seconds)
            running = await job_rows.in_flight(conn)
            if capacity.slots or capacity.trial_token is None:
                return capacity, running, fairness.free_room(capacity.slots, running, out)
            tried = await job_rows.running_since(conn, capacity.trial_token)
            return capacity, running, max(0, 1 - tried - out)


def _bulk(capacity: Capacity, running: InFlight, out: int, view: View) -> int:
    if not capacity.slots:
        return 1  # on trial anybody may try
    return fairness.bulk_room(capacity.slots, running, out, others_wait=view.others_wait)
