"""Keeps this process's leases alive, from a thread of its own so that a busy loop cannot let them lapse.

And the other way round: a loop that is really stuck must not keep its jobs for ever, so the heart stops renewing when
the loop has not turned for a while, and gives the jobs up itself before their leases end (self-fencing).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

from compaction import telemetry
from compaction.errors import CompactdError
from compaction.store import jobs as job_rows
from compaction.store import survivals
from compaction.store import workers as worker_rows
from compaction.store.engine import ANSWER_SECONDS, Database
from worker.held import Held

PULSE_SECONDS = 1.0  # progress and cancel flags: a cancel reaches a running call within about this
STUCK_LOOP_SECONDS = 15.0  # facts/queue.md §4: stop renewing when the loop is stuck for so long
CLAIM_SECONDS = ANSWER_SECONDS + 5.0  # no claim is under way for so long: one that we do not hold was never answered
SELF_FENCE_SHARE = 0.75  # of the lease: 45 of 60 seconds (facts/queue.md §3.1)

_log = telemetry.logger("heart")


class Heart:
    """Beats for all held jobs of the process with one statement."""

    def __init__(  # noqa: PLR0913 - the process's facts, all named at the call
        self,
        *,
        owner: str,
        database_url: str,
        slots: int,
        lease_seconds: float,
        heartbeat_seconds: float,
        lag_seconds: Callable[[], float],
        provider: str | None = None,
    ) -> None:
        self.owner = owner
        self.draining = False
        self.has_beaten = False  # Postgres took a beat of this process
        self._provider = provider
        self._due = 0.0
        self._beat_at = time.monotonic()
        self._database_url = database_url
        self.slots = slots
        self._lease_seconds = lease_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._lag_seconds = lag_seconds
        self._held: dict[int, Held] = {}
        self._lost: dict[int, str] = {}  # job ids by token: leases that ended while we live
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._beat_until_stopped()), name="compactd-heart")
        self._thread.daemon = True

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread and takes this worker off the list."""
        self._stopped.set()
        self._thread.join(timeout=5)

    def drain(self) -> None:
        """No new jobs: the leader hears of it with the next pulse, not with the next beat."""
        self.draining = True
        self._due = 0.0

    def hold(self, held: Held) -> None:
        """Beats for this job from now on."""
        with self._lock:
            self._held[held.token] = held

    def let_go(self, token: int) -> None:
        """Beats for it no longer."""
        with self._lock:
            self._held.pop(token, None)

    def give_up(self, job_id: str, token: int) -> None:
        """What became of this attempt could not be written: it counts, and others may run the job."""
        self._lost[token] = job_id

    def held(self) -> list[Held]:
        """The jobs that run in this process now."""
        with self._lock:
            return list(self._held.values())

    def running(self) -> int:
        """How many jobs run in this process now."""
        return len(self._held)

    def silent_seconds(self) -> float:
        """Since the last beat that Postgres took, or since the start."""
        return time.monotonic() - self._beat_at

    async def _beat_until_stopped(self) -> None:
        database = Database(self._database_url, pool_size=1)
        watch = asyncio.create_task(self._watch())
        try:
            while not self._stopped.is_set():
                if time.monotonic() >= self._due:
                    self._due = time.monotonic() + self._heartbeat_seconds
                    await self._guarded(self._beat(database))
                else:
                    await self._guarded(self._pulse(database))
                await asyncio.sleep(min(PULSE_SECONDS, self._heartbeat_seconds))
            await self._guarded(self._leave(database))
        finally:
            watch.cancel()
            await database.close()

    async def _watch(self) -> None:
        """Fences on time even while a beat waits for a database that says nothing."""
        while True:
            self._fence_if_silent()
            await asyncio.sleep(min(PULSE_SECONDS, self._heartbeat_seconds))

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except CompactdError as error:
            _log.warning("heart.missed", owner=self.owner, code=error.code)
        except Exception as error:  # noqa: BLE001 - a heart that stops loses every job of the process
            _log.error("heart.fault", owner=self.owner, **telemetry.failure(error))

    async def _beat(self, database: Database) -> None:
        lag = self._lag_seconds()
        if lag > STUCK_LOOP_SECONDS:
            _log.error("heart.loop_stuck", owner=self.owner, lag_seconds=round(lag, 1))
            return
        held = self.held()
        async with database.begin() as conn:
            await worker_rows.beat_worker(conn, self.owner, self.slots, len(held), lag, self.draining, self._provider)
            beat = await job_rows.beat(conn, self.owner, self._lease_seconds, [one.token for one in held])
        self.has_beaten = True
        self._beat_at = now = time.monotonic()
        for one in held:
            if one.token not in beat.alive:
                self._lose(one)
                continue
            one.renewed_at = now
            if one.job_id in beat.cancel_requested:
                one.stop("cancel")
        await self._survive(database)

    async def _survive(self, database: Database) -> None:
        """We live: what we lost was no crash, and what we do not run others may."""
        lost, held = dict(self._lost), [one.token for one in self.held()]
        async with database.connect() as conn:
            back = await survivals.hand_back(conn, self.owner, held, list(lost), settle_seconds=CLAIM_SECONDS)
            still_open = await survivals.forgive(conn, self.owner, lost) if lost else frozenset()
        for token in lost.keys() - still_open:
            self._lost.pop(token, None)
        if back:
            _log.warning("heart.handed_back", owner=self.owner, jobs=len(back))

    async def _pulse(self, database: Database) -> None:
        held = self.held()
        if not held:
            return
        steps = {one.token: one.recorder.progress for one in held if one.recorder.progress is not None}
        async with database.connect() as conn:
            for token, progress in steps.items():
                await job_rows.set_progress(conn, token, progress)
            wanted = await job_rows.cancel_requested(conn, [one.token for one in held])
        for one in held:
            if one.recorder.progress is steps.get(one.token):
                one.recorder.progress = None
            if one.token in wanted:
                one.stop("cancel")

    def _fence_if_silent(self) -> None:
        latest = time.monotonic() - self._lease_seconds * SELF_FENCE_SHARE
        for one in self.held():
            if one.renewed_at < latest:
                self._lose(one)

    def _lose(self, one: Held) -> None:
        self._lost[one.token] = one.job_id
        one.stop("lease")

    async def _leave(self, database: Database) -> None:
        async with database.begin() as conn:
            await worker_rows.forget(conn, self.owner)
