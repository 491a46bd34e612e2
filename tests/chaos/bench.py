"""One worker's runner on a real database, in this process, with a tripwire on everything that a job calls."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from compaction.core.jobs import MAX_MODEL_CALLS
from compaction.hooks.chain import HookSources
from compaction.hooks.guarded import GuardedCaller
from compaction.settings import settings_from
from compaction.store import breakers, jobs
from compaction.store.sessions import NewMessage
from tests.chaos.tripwire import Tripwire, WiredAssignments, WiredDatabase
from tests.integration.service import history
from tests.integration.store.stage import Stage
from tests.unit.fakes import ScriptedSummarizer
from worker.dispatch import Doorbell
from worker.heartbeat import Heart
from worker.provider import Provider
from worker.run import Runner

MAX_TURNS = 6  # more than a job needs that met one fault
LEASE_SECONDS = 60.0  # ends by hand


class SilentBell(Doorbell):
    """Rings nowhere."""

    def __init__(self) -> None:
        """Needs no Redis."""

    async def ring(self, job_id: str) -> bool:
        return True


@dataclass(frozen=True)
class Bench:
    """The words of the sweeps."""

    stage: Stage
    database: WiredDatabase
    url: str

    async def job(self) -> str:
        """A session worth compacting, and its job."""
        session = await self.stage.session()
        batch = [NewMessage(json.dumps(one).encode(), None, one["role"]) for one in history(4, characters=1_000)]
        await self.stage.append(session, *batch)
        return (await self.stage.enqueue(session, "manual")).job.id

    def heart(self) -> Heart:
        """A heart that does not beat: who interrupts a job does it by hand."""
        return Heart(
            owner="bench",
            database_url=self.url,
            slots=1,
            lease_seconds=LEASE_SECONDS,
            heartbeat_seconds=10,
            lag_seconds=lambda: 0.0,
        )

    async def deliver(self, job_id: str, wire: Tripwire, summarizer: ScriptedSummarizer, heart: Heart) -> None:
        """One delivery of the job's message."""
        self.database.wire = wire
        settings = settings_from({"COMPACTD_DATABASE_URL": self.url, "COMPACTD_REDIS_URL": "redis://none"})
        provider = Provider(self.database, summarizer, base_seconds=0.01)
        hooks = HookSources((), GuardedCaller(settings.hook_rules))
        runner = Runner(
            database=self.database,
            heart=heart,
            doorbell=SilentBell(),
            assignments=WiredAssignments(self.database, settings, provider, summarizer, hooks, wire=wire),
            provider=provider,
            lease_seconds=LEASE_SECONDS,
            timeout_seconds=60,
            backoff_seconds=0.01,
        )
        try:
            await runner.run(job_id)
        finally:
            assert heart.held() == []

    async def steps_of_a_job(self) -> list[str]:
        """The names of all calls that an undisturbed job makes."""
        wire = Tripwire()
        await self.deliver(await self.job(), wire, ScriptedSummarizer(), self.heart())
        return wire.steps

    async def run_to_the_end(self, job_id: str, summarizer: ScriptedSummarizer) -> None:
        """What the other workers and the reconciler do, as fast as time passes here."""
        for _ in range(MAX_TURNS):
            await self.stage.change("UPDATE jobs SET not_before = now() WHERE id = %s AND status = 'retrying'", job_id)
            await self.deliver(job_id, Tripwire(), summarizer, self.heart())
            if (await self.stage.job(job_id)).done:
                return
            await self.stage.change("UPDATE jobs SET lease_expires_at = now() - interval '1 s' WHERE id = %s", job_id)
            async with self.stage.database.begin() as conn:
                await jobs.reap_expired(conn, 10)

    async def outcomes(self, job_id: str) -> Counter[str | None]:
        """How the job's attempts ended; None for one that is still open."""
        rows = await self.stage.query("SELECT outcome FROM attempts WHERE job_id = %s", job_id)
        return Counter(row[0] for row in rows)

    async def problems(self, job_id: str, calls: int, *ends: str) -> list[str]:
        """Which promises the end of a job that met one fault breaks, if it may end as one of `ends`."""
        job, outcomes = await self.stage.job(job_id), await self.outcomes(job_id)
        results = await self.stage.query("SELECT lease_token FROM results WHERE job_id = %s", job_id)
        won = await self.stage.query(
            "SELECT lease_token FROM attempts WHERE job_id = %s AND outcome = 'succeeded'", job_id
        )
        events = await self.stage.query("SELECT type FROM job_events WHERE job_id = %s", job_id)
        async with self.stage.database.connect() as conn:
            breaker = await breakers.get(conn, job.session_id)
        whole = job.status == "succeeded"
        broken = {
            f"ended as {job.status} {job.error}": job.status not in ends,
            f"{len(results)} results, {len(won)} winners": results != won or len(results) != whole,
            f"{outcomes[None]} attempts are open": outcomes[None] > 0,
            f"{events.count(('tengu_compact',))} compaction events": events.count(("tengu_compact",)) != whole,
            f"{calls} calls": calls > 2 or job.model_calls > MAX_MODEL_CALLS,
            f"attempt {job.attempt}, {job.crashes} crashes": job.attempt > 2 or job.crashes > 1,
            f"the breaker counts {breaker.failures}": breaker.failures != 0,
        }
        return [text for text, is_broken in broken.items() if is_broken]
