"""The model's API as this process uses it: under which credential, within which limits, and whether it is paused.

What decides is `core.pausing`; what is decided stands in Postgres, so that one worker's trouble with a credential stops
all workers that use it, and no others.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import dataclass

from compaction import telemetry
from compaction.core import pausing
from compaction.core.pausing import OutageWatch
from compaction.errors import CompactdError, JobError, ProviderError
from compaction.ports import Progress, Summarizer, SummaryReply, SummaryRequest
from compaction.settings import Settings
from compaction.store import pauses
from compaction.store.engine import Database
from compaction.store.jobs import Claim
from compaction.summarizers.model_directory import TellsLimits
from compaction.summarizers.models import ModelLimits
from worker.limiter import Limiter
from worker.limits import LimitedSummarizer
from worker.model_spans import TracedSummarizer

FINGERPRINT_CHARS = 12  # 48 bits: enough to tell keys apart, useless to guess one

_log = telemetry.logger("provider")


def provider_name(settings: Settings) -> str | None:
    """The summarizer and a fingerprint of its credential and address; None where no model is called."""
    if not settings.uses_claude:
        return None
    secret = settings.anthropic_api_key or settings.anthropic_auth_token or ""
    marked = f"{settings.anthropic_base_url or ''}\n{secret}".encode()
    return f"claude-{hashlib.sha256(marked).hexdigest()[:FINGERPRINT_CHARS]}"


class Provider:
    """One per process. Without a name it calls nobody, is never paused and has no limits."""

    def __init__(
        self,
        database: Database,
        summarizer: Summarizer,
        *,
        name: str | None = None,
        limiter: Limiter | None = None,
        base_seconds: float,
    ) -> None:
        self.name = name
        self._database = database
        self._bare = summarizer
        self._traced = TracedSummarizer(summarizer)
        self._limiter = limiter
        self._base_seconds = base_seconds  # the operator's first pause before a retry; probes follow it
        self._outage = OutageWatch()

    def summarizer(self, claim: Claim) -> Summarizer:
        """What the claimed job's attempt calls."""
        if self.name is None:
            return self._bare
        watched = _WatchedSummarizer(self._traced, self, on_trial=claim.on_trial)
        return watched if self._limiter is None else LimitedSummarizer(watched, self._limiter, claim.tenant)

    async def limits(self, model: str) -> ModelLimits | None:
        """What the provider's Models API says about a model, from memory for an hour; None where it cannot tell."""
        return await self._bare.limits(model) if isinstance(self._bare, TellsLimits) else None

    async def failed(self, claim: Claim, error: JobError) -> bool:
        """Pauses the provider if `error` is a reason to; whether the job goes back to the queue, nothing used up."""
        if self.name is None or not (error.pauses_provider or pausing.is_outage(error)):
            return False
        try:
            if error.pauses_provider or claim.on_trial or self._outage.failed(claim.job.id, time.monotonic()):
                return await self._pause(self.name, error)
            async with self._database.connect() as conn:
                return await pauses.phase(conn, self.name) == "paused"
        except CompactdError as problem:
            _log.warning("provider.not_noted", code=problem.code)
            return False

    async def answered(self, *, on_trial: bool) -> None:
        """A call was answered: the provider works. Ends a trial."""
        self._outage.answered()
        if not on_trial or self.name is None:
            return
        try:
            async with self._database.connect() as conn:
                opened = await pauses.answered(conn, self.name)
        except CompactdError as problem:  # the next job on trial will do
            _log.warning("provider.not_noted", code=problem.code)
            return
        if opened:
            _log.warning("provider.resumed", provider=self.name)

    async def probe_for_ever(self, every_seconds: float) -> None:
        """Looks so often whether a probe is due: apart from the reconciler, which must not wait for a silent API."""
        while True:
            try:
                await self.probe_if_due()
            except CompactdError as problem:
                _log.warning("provider.not_probed", code=problem.code)
            except Exception as error:  # noqa: BLE001 - without probes a pause would never end
                _log.error("provider.fault", **telemetry.failure(error))
            await asyncio.sleep(every_seconds)

    async def probe_if_due(self) -> None:
        """Probes a paused provider when its time has come; of all workers with this credential one does."""
        if self.name is None:
            return
        async with self._database.connect() as conn:
            due = await pauses.take_probe(conn, self.name)
        if due is None:
            return
        problem = await self._probe()
        async with self._database.connect() as conn:
            if problem is not None:
                delay = pausing.probe_delay_seconds(due.trips, due.probes + 1, self._base_seconds)
                await pauses.probe_failed(conn, self.name, problem.code, delay)
                _log.warning("provider.probe_failed", provider=self.name, reason=problem.code, again_in_seconds=delay)
            elif await pauses.begin_trial(conn, self.name):
                _log.warning("provider.on_trial", provider=self.name)

    async def _pause(self, name: str, error: JobError) -> bool:
        async with self._database.begin() as conn:
            paused = await pauses.pause(conn, name, error.code, self._base_seconds)
        if paused.before != "paused":
            _log.error("provider.paused", provider=name, reason=error.code, trips=paused.trips)
        return pausing.gives_back(error, paused.before, paused.trips)

    async def _probe(self) -> ProviderError | None:
        """Why the provider cannot be used; a refusal for another reason is an answer."""
        try:
            await self._bare.probe()
        except ProviderError as problem:
            return problem if problem.pauses_provider or pausing.is_outage(problem) else None
        return None


@dataclass(frozen=True, slots=True)
class _WatchedSummarizer:
    """Implements ports.Summarizer; tells the provider when it has answered."""

    inner: Summarizer
    provider: Provider
    on_trial: bool

    @property
    def name(self) -> str:
        return self.inner.name

    async def summarize(self, request: SummaryRequest, progress: Progress) -> SummaryReply:
        call = self.inner.summarize(request, progress)
        del request  # hundreds of calls wait here, and nothing of a transcript may wait with them
        try:
            reply = await call
        except ProviderError as error:
            if not error.pauses_provider and not pausing.is_outage(error):
                await self.provider.answered(on_trial=self.on_trial)
            raise
        await self.provider.answered(on_trial=self.on_trial)
        return reply

    async def count_tokens(self, request: SummaryRequest) -> int | None:
        asking = self.inner.count_tokens(request)
        del request
        return await asking

    async def probe(self) -> None:
        await self.inner.probe()
