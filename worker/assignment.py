"""From a claimed row to what the pipeline needs: the session's facts and limits, the guards' switches, the ports."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from compaction.auto import Switches
from compaction.core import breaker, cleanup, json_values, jsonbytes, session_state
from compaction.core.hooks import Endpoint
from compaction.core.messages import Message, decode_message
from compaction.core.results import Order, SessionFacts
from compaction.errors import InvalidSession
from compaction.hooks.chain import HookSources
from compaction.limits import ignored_in_session, marks, session_limits
from compaction.pipeline import SUMMARY_TOKENS
from compaction.ports import Price, Recorder, Summarizer
from compaction.settings import Settings
from compaction.store import bulk_items
from compaction.store import hooks as hook_rows
from compaction.store import session_state as state_rows
from compaction.store import sessions as session_rows
from compaction.store.bulk_items import BulkOrder
from compaction.store.engine import Database
from compaction.store.jobs import Claim, JobRow
from compaction.store.sealed_text import readable
from compaction.store.session_state import StateEntry
from compaction.store.sessions import LiveView
from compaction.summarizers import models
from compaction.summarizers.models import ModelLimits
from compaction.task import Ports, Task
from worker import spending
from worker.provider import Provider
from worker.recorder import AttemptRecorder, decode_paid
from worker.verdict import MICRO_STATE

_CROWDED = (
    f"The session's live view holds more than {json_values.MAX_VIEW_VALUES} JSON values, too many to decode at once. "
    "Store it as several sessions."
)


@dataclass(slots=True)
class StoredHistory:
    """The History port: the session's live view through the snapshot, held until it is released."""

    database: Database
    session_id: int
    through_seq: int
    anew: bool = False  # from what the producer stored, whatever was compacted before
    _messages: tuple[Message, ...] | None = None

    async def load(self) -> Sequence[Message]:
        """The messages, decoded. Raises InvalidSession for too many, or for one that is none."""
        if self._messages is None:
            async with self.database.connect() as conn:
                load = session_rows.load_original if self.anew else session_rows.load_live
                view = await load(conn, self.session_id, through_seq=self.through_seq)
            self._messages = decode_view(view)
        return self._messages

    def release(self) -> None:
        """Forgets the messages."""
        self._messages = None


def decode_view(view: LiveView) -> tuple[Message, ...]:
    """The messages of a stored live view: those of the last result, then what was appended after it."""
    if json_values.together_hold_more((stored.body for stored in view.messages), json_values.MAX_VIEW_VALUES):
        raise InvalidSession(_CROWDED)
    earlier = view.result_body.messages if view.result_body is not None else ()
    try:
        return (*earlier, *(decode_message(stored.body, seq=stored.seq) for stored in view.messages))
    except ValueError as error:
        raise InvalidSession(f"A stored message cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class Assignments:
    """Prepares attempts; one per process."""

    database: Database
    settings: Settings
    provider: Provider
    extractive: Summarizer
    hooks: HookSources

    async def prepare(self, claim: Claim, recorder: AttemptRecorder) -> tuple[Task, Switches, Ports]:
        """What one attempt works with; small queries, no messages yet."""
        order = await self._bulk_order(claim.job)
        return await self.prepared(claim, recorder, order, self.provider.summarizer(claim))

    async def prepared(
        self, claim: Claim, recorder: Recorder, order: BulkOrder | None, summarizer: Summarizer
    ) -> tuple[Task, Switches, Ports]:
        """The same for an order of a bulk run that is known, and with this summarizer."""
        job = claim.job
        entries, endpoints = await self._state_and_hooks(claim)
        facts = _facts(claim, session_rows.parameters_in(claim.parameters))
        model = (order.model if order else None) or self.settings.summary_model
        task = self._task(claim, facts, entries, await self._limits(facts, model), model or facts.model)
        if ignored := [*ignored_in_session(facts.settings), *task.table.problems]:
            recorder.event("settings_ignored", {"problems": list(ignored)})
        switches = Switches(
            disable_compact=self.settings.disable_compact,
            disable_auto_compact=self.settings.disable_auto_compact,
            breaker_open=breaker.is_open(claim.breaker, claim.claimed_at, self.settings.breaker_cooldown_seconds),
        )
        ports = Ports(
            history=StoredHistory(self.database, job.session_id, claim.covers_through_seq, anew=order is not None),
            summarizer=summarizer,
            extractive=self.extractive,
            recorder=recorder,
            hooks=self.hooks.chain(endpoints),
            price=_price(facts),
            last_resort=job.fallback == "extractive",
        )
        return task, switches, ports

    async def _state_and_hooks(self, claim: Claim) -> tuple[Sequence[StateEntry], Sequence[Endpoint]]:
        """What the claim said is there; most sessions have neither, and then nobody asks."""
        if not (claim.has_state or claim.has_hooks):
            return (), ()
        async with self.database.connect() as conn:
            return (
                await state_rows.load(conn, claim.job.session_id) if claim.has_state else (),
                await hook_rows.endpoints(conn, claim.job.tenant_id) if claim.has_hooks else (),
            )

    async def _bulk_order(self, job: JobRow) -> BulkOrder | None:
        """What the job's bulk run says; None for a job of nobody's run."""
        if job.trigger != "bulk":
            return None
        async with self.database.connect() as conn:
            return await bulk_items.order_of(conn, job.id)

    async def _limits(self, facts: SessionFacts, other: str | None) -> tuple[ModelLimits, ModelLimits]:
        """What the session's model takes and gives, and what `other` does where it writes fresh summaries."""
        if other is None:
            limits = session_limits(facts.model, facts.settings, await self.provider.limits(facts.model))
            return limits, limits
        known, writer = await asyncio.gather(self.provider.limits(facts.model), self.provider.limits(other))
        return session_limits(facts.model, facts.settings, known), models.limits_for(other, known=writer)

    def _task(
        self,
        claim: Claim,
        facts: SessionFacts,
        entries: Sequence[StateEntry],
        both: tuple[ModelLimits, ModelLimits],
        model: str,
    ) -> Task:
        limits, writer = both
        return Task(
            facts=facts,
            order=_order(claim.job),
            covers_through_seq=claim.covers_through_seq,
            now=claim.claimed_at,
            thresholds=marks(limits, facts.settings, self.settings),
            model=model,
            window_tokens=writer.context_window_tokens,
            max_output_tokens=writer.max_output_tokens,
            session_window_tokens=limits.context_window_tokens,
            room_tokens=limits.context_window_tokens - min(limits.max_output_tokens, SUMMARY_TOKENS),
            min_cacheable_tokens=limits.min_cacheable_tokens,
            limit_bytes=models.platform_facts("anthropic").max_body_bytes,
            state=session_state.state_from(_after_clean_up(claim, entries)),
            has_runtime_state=any(entry.kind in {cleanup.RUNTIME, MICRO_STATE[0]} for entry in entries),
            cleared_ids=_cleared_ids(entries),
            micro_threshold_ms=self.settings.time_based_micro_ms,
            shares_prefix=self.settings.shared_prefix,
            fallback_model=self.settings.fallback_model,
            attempt=claim.job.attempt,
            is_last_attempt=claim.job.attempt >= claim.job.max_attempts,
            paid=decode_paid(claim.paid_summary) if claim.paid_summary is not None else None,
            spent=spending.of_earlier(claim.spent),
        )


def _price(facts: SessionFacts) -> Price:
    """What the session's calls cost: cache writes live as long as its own requests say."""
    request = facts.request if isinstance(facts.request, dict) else {}
    return partial(models.price, cache_ttl="1h" if request.get("cache_ttl") == "1h" else "5m")


def _facts(claim: Claim, parameters: Mapping[str, bytes]) -> SessionFacts:
    values = {name: jsonbytes.decode(raw) for name, raw in parameters.items()}
    return SessionFacts(
        session_id=claim.session.name,
        tenant=claim.tenant,
        model=claim.session.model,
        system=values.get("system"),
        tools=values.get("tools"),
        request=values.get("request"),
        settings=claim.session.settings,
        query_source=claim.session.query_source,
    )


def _after_clean_up(claim: Claim, entries: Sequence[StateEntry]) -> list[session_state.Entry]:
    """The stored state as the attachments see it: what is forgotten before they are built is left out."""
    steps = cleanup.steps_for(claim.session.query_source, "fresh", phase="before_attachments")
    kept = (entry for entry in entries if not cleanup.forgets(entry.kind, entry.key, steps))
    return [(entry.kind, entry.key, jsonbytes.decode(entry.body)) for entry in kept if entry.kind != cleanup.RUNTIME]


def _cleared_ids(entries: Sequence[StateEntry]) -> frozenset[str]:
    """Calls whose results micro-compaction cleared before, as `worker.verdict` remembered them."""
    for entry in entries:
        if (entry.kind, entry.key) == MICRO_STATE:
            listed = jsonbytes.decode(entry.body)
            return (
                frozenset(ident for ident in listed if isinstance(ident, str))
                if isinstance(listed, list)
                else frozenset()
            )
    return frozenset()


def _order(job: JobRow) -> Order:
    return Order(
        job_id=job.id,
        trigger=job.trigger,
        scope=job.scope,
        instructions=readable(job.instructions),
        strategy=job.strategy,
        fallback=job.fallback,
        force=job.force,
        token_gap=job.token_gap,
    )
