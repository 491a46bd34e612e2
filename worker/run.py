"""One job from the doorbell to the commit: claim → pipeline → verdict → finish.

No database connection is held while the model writes. What happens to the job is decided in `verdict` and applied by
`store.jobs.finish` in one fenced transaction.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import replace

from compaction import auto, telemetry
from compaction.errors import AttemptTimeout, CompactdError, Internal, JobError, LeaseLost, ProviderError, Unavailable
from compaction.store import jobs as job_rows
from compaction.store.engine import Database
from compaction.store.jobs import Claim, Finish
from worker import attempt_spans, metrics, verdict
from worker.assignment import Assignments
from worker.dispatch import Doorbell
from worker.gate import Gate, Seat
from worker.heartbeat import Heart
from worker.held import Held
from worker.outside import waiting_outside
from worker.provider import Provider
from worker.quarantine import Quarantine
from worker.recorder import AttemptRecorder

COMMIT_TRIES = 6  # over 0.5 + 1 + 2 + 4 + 8 seconds a restarted Postgres is back; the lease lasts longer than that
QUARANTINE_SECONDS = 3.0  # until a job that lost a worker asks for its turn again; most calls take ten
_log = telemetry.logger("worker")


class Runner:
    """Runs jobs on the process's loop, many at once."""

    def __init__(  # noqa: PLR0913 - the composition root passes each part by name
        self,
        *,
        database: Database,
        heart: Heart,
        doorbell: Doorbell,
        assignments: Assignments,
        provider: Provider,
        lease_seconds: float,
        timeout_seconds: float,
        backoff_seconds: float,
    ) -> None:
        self._database = database
        self._gate = Gate()
        self._heart = heart
        self._quarantine = Quarantine()
        self._doorbell = doorbell
        self._assignments = assignments
        self._provider = provider
        self._lease_seconds = lease_seconds
        self._timeout_seconds = timeout_seconds
        self._backoff_seconds = backoff_seconds

    async def run(self, job_id: str) -> None:
        """Claims the job and brings it to its next state; returns at once when there is nothing to claim."""
        async with self._gate.seat() as seat:
            await self._run(job_id, seat)

    async def _run(self, job_id: str, seat: Seat) -> None:
        if self._heart.draining:
            await self._pass_on(job_id)
            return
        claim = await self._claim(job_id)
        if claim is None:
            metrics.DUPLICATES.inc()
            _log.debug("job.not_claimed", job_id=job_id)  # a late or doubled ring: normal
            return
        try:
            await self._admit(claim, seat)
        finally:
            self._quarantine.leave(claim.token)

    async def _admit(self, claim: Claim, seat: Seat) -> None:
        """A job that may not run beside those that are here goes back; two claims at once did not see each other."""
        began = time.monotonic()
        if not self._quarantine.admit(claim.token, claim.job.crashes):
            await self._commit(claim, replace(verdict.released([]), delay_seconds=QUARANTINE_SECONDS), began)
            return
        metrics.claimed(claim)
        with attempt_spans.span(claim) as spanned, telemetry.traced(spanned.traceparent, **_ids(claim)):
            finish = await self._carry(claim, seat, began)
            spanned.ended(finish)

    async def _carry(self, claim: Claim, seat: Seat, began: float) -> Finish | None:
        """One attempt of a claimed job, to its commit; what became of it, None when it is another worker's now."""
        recorder = AttemptRecorder(self._database, claim.job.id, claim.token)
        held = self._hold(claim, recorder)
        try:
            finish = await self._attempt(claim, recorder, held, seat)
            held.is_settled = True  # from here on an interruption could only lose what is decided
            if finish is None:
                return None
            settled = verdict.ephemeral(finish) if claim.session.is_ephemeral else finish
            return finish if await self._commit(claim, settled, began) else None
        finally:
            self._heart.let_go(claim.token)

    async def _claim(self, job_id: str) -> Claim | None:
        try:
            async with self._database.connect() as conn:
                return await job_rows.claim(
                    conn, job_id, self._heart.owner, self._lease_seconds, provider=self._provider.name
                )
        except CompactdError as error:  # claimed or not, the reconciler finds out: it rings again, or the lease ends
            _log.warning("job.claim_missed", job_id=job_id, code=error.code)
            return None

    async def _pass_on(self, job_id: str) -> None:
        """A ring that came too late: the reconciler rings again at once, and another worker hears it."""
        try:
            async with self._database.connect() as conn:
                await job_rows.forget_ring(conn, job_id)
        except CompactdError as error:  # then it rings again a little later
            _log.warning("job.not_passed_on", job_id=job_id, code=error.code)

    def _hold(self, claim: Claim, recorder: AttemptRecorder) -> Held:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        if task is None:  # pragma: no cover - run() is always a task
            raise RuntimeError("not on the loop")

        def interrupt() -> None:
            if not held.is_settled:
                task.cancel()

        held = Held(claim.job.id, claim.token, recorder, lambda: loop.call_soon_threadsafe(interrupt))
        self._heart.hold(held)
        return held

    async def _attempt(self, claim: Claim, recorder: AttemptRecorder, held: Held, seat: Seat) -> Finish | None:
        """The verdict on one attempt; None when the job is another worker's now."""
        job = claim.job
        try:
            async with asyncio.timeout(self._timeout_seconds):
                task, switches, ports = await self._assignments.prepare(claim, recorder)
                outcome = await auto.run(task, switches, waiting_outside(ports, seat))
            return verdict.on_outcome(job, outcome, recorder.events, task)
        except asyncio.CancelledError:
            return self._interrupted(held, recorder)
        except LeaseLost:
            _log.warning("job.lease_lost", job_id=job.id, token=claim.token)
            return None
        except Exception as error:  # noqa: BLE001 - a fault of ours must end the attempt, not the worker
            held.is_settled = True
            if isinstance(error, ProviderError) and await self._provider.failed(claim, error):
                return verdict.given_back(error, recorder.events)
            return self._failed(claim, error, recorder)

    def _interrupted(self, held: Held, recorder: AttemptRecorder) -> Finish | None:
        task = asyncio.current_task()
        if held.reason is None or task is None:
            raise asyncio.CancelledError
        task.uncancel()
        if held.reason == "lease":
            _log.warning("job.lease_lost", job_id=held.job_id, token=held.token)
            return None
        return verdict.cancelled(recorder.events) if held.reason == "cancel" else verdict.released(recorder.events)

    def _failed(self, claim: Claim, error: Exception, recorder: AttemptRecorder) -> Finish:
        job, events = claim.job, recorder.events
        jitter = random.random()  # noqa: S311 - spreads retries, guards nothing
        if isinstance(error, TimeoutError):  # of this attempt: the provider's own come as ProviderTimeout
            error = AttemptTimeout()
        if isinstance(error, Unavailable | OSError):  # Postgres is away, say: no fault of the job's, and it will pass
            _log.warning("job.disturbed", job_id=job.id, problem=type(error).__name__)
            return verdict.disturbed(claim, events, jitter=jitter, backoff_seconds=self._backoff_seconds)
        if not isinstance(error, JobError):
            _log.error("job.fault", job_id=job.id, **telemetry.failure(error))
            error = Internal()
        return verdict.on_error(claim, error, events, jitter=jitter, backoff_seconds=self._backoff_seconds)

    async def _commit(self, claim: Claim, finish: Finish, began: float) -> bool:
        """Whether the decision was applied: the lease may be another's by now, or Postgres away for too long."""
        for number in range(COMMIT_TRIES):
            try:
                async with self._database.connect() as conn:
                    held = await job_rows.finish(conn, claim.job.id, claim.token, finish)
                    waits = held is not None and held.session_waits
                    following = await job_rows.next_waiting(conn, claim.job.session_id) if waits else None
            except CompactdError as error:
                if number + 1 == COMMIT_TRIES:
                    _log.error("job.commit_lost", job_id=claim.job.id, code=error.code)
                    self._heart.give_up(claim.job.id, claim.token)  # it runs again; a paid summary is used again
                    return False
                await asyncio.sleep(0.5 * 2**number)
                continue
            seconds = time.monotonic() - began
            _log.info("job.finished" if held else "job.fenced", **_ids(claim), **_told(claim, finish, seconds))
            if held:
                metrics.committed(claim, finish, seconds)
            else:
                metrics.FENCED.inc()
            if following is not None:
                await self._doorbell.ring(following)
            return held is not None
        return False  # pragma: no cover - the last try has returned


def _ids(claim: Claim) -> dict[str, str | None]:
    """By which ids a job is found in the logs."""
    return {"job_id": claim.job.id, "session_id": claim.job.session_name}


def _told(claim: Claim, finish: Finish, seconds: float) -> dict[str, object]:
    """What the log says of an attempt's end; `session_tokens` are those before and after."""
    facts: dict[str, object] = {
        "status": finish.status,
        "trigger": claim.job.trigger,
        "attempt": claim.job.attempt,
        "seconds": round(seconds, 3),
    }
    if finish.reason is not None:
        facts["reason"] = finish.reason
    if finish.error is not None:
        facts["code"] = finish.error.get("code")
    if finish.result is not None:
        made = finish.result
        facts |= {"strategy": made.strategy, "session_tokens": [made.pre_tokens, made.post_tokens]}
    return facts
