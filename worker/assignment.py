"""From a claimed row to what the pipeline needs: the session's facts, its limits, the guards' switches and the ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.auto import Switches
from compaction.core import breaker, jsonbytes, thresholds
from compaction.core.messages import Message, decode_message, message_from
from compaction.core.results import Order, SessionFacts
from compaction.errors import InvalidSession
from compaction.pipeline import Ports, Task
from compaction.ports import NoHooks, Summarizer
from compaction.settings import Settings
from compaction.store import breakers as breaker_rows
from compaction.store import sessions as session_rows
from compaction.store.engine import Database
from compaction.store.jobs import Claim, JobRow
from compaction.store.sessions import LiveView, SessionRow
from compaction.summarizers import models
from worker.recorder import AttemptRecorder, decode_paid


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """The History port: the session's live view through the snapshot, read anew at each call."""

    database: Database
    session_id: int
    through_seq: int

    async def load(self) -> Sequence[Message]:
        """The messages, decoded. Raises InvalidSession when a stored body is no message (a bug, or a damaged disk)."""
        async with self.database.begin() as conn:
            view = await session_rows.load_live(conn, self.session_id, through_seq=self.through_seq)
        return decode_view(view)


def decode_view(view: LiveView) -> tuple[Message, ...]:
    """The messages of a stored live view: those of the last result, then what was appended after it."""
    try:
        earlier = [message_from(value) for value in view.result_messages()]
        return (*earlier, *(decode_message(stored.body, seq=stored.seq) for stored in view.messages))
    except ValueError as error:
        raise InvalidSession(f"A stored message cannot be read: {error}") from None


@dataclass(frozen=True, slots=True)
class Assignments:
    """Prepares attempts; one per process."""

    database: Database
    settings: Settings
    summarizer: Summarizer
    last_resort: Summarizer

    async def prepare(self, claim: Claim, recorder: AttemptRecorder) -> tuple[Task, Switches, Ports]:
        """What one attempt works with; two small queries, no messages yet."""
        job = claim.job
        async with self.database.begin() as conn:
            session = await session_rows.by_id(conn, job.session_id)
            state = await breaker_rows.get(conn, job.session_id)
        facts = _facts(session)
        task = self._task(claim, facts)
        switches = Switches(
            disable_compact=self.settings.disable_compact,
            disable_auto_compact=self.settings.disable_auto_compact,
            breaker_open=breaker.is_open(state, self.settings.breaker_cooldown_seconds),
        )
        ports = Ports(
            history=StoredHistory(self.database, job.session_id, claim.covers_through_seq),
            summarizer=self.summarizer,
            recorder=recorder,
            hooks=NoHooks(),
            price=models.price,
            last_resort=self.last_resort if job.fallback == "extractive" else None,
        )
        return task, switches, ports

    def _task(self, claim: Claim, facts: SessionFacts) -> Task:
        limits = models.limits_for(facts.model, facts.settings)
        return Task(
            facts=facts,
            order=_order(claim.job),
            covers_through_seq=claim.covers_through_seq,
            thresholds=thresholds.thresholds(
                limits.window,
                limits.max_output,
                window_override=thresholds.window_override(self.settings.auto_compact_window, facts.settings),
                percent_override=thresholds.percent_override(self.settings.autocompact_percent, facts.settings),
            ),
            max_output_tokens=limits.max_output,
            model=self.settings.summary_model or facts.model,
            attempt=claim.job.attempt,
            paid=decode_paid(claim.paid_summary) if claim.paid_summary is not None else None,
        )


def _facts(session: SessionRow) -> SessionFacts:
    parameters = jsonbytes.decode(session.parameters) if session.parameters else {}
    return SessionFacts(
        session_id=session.name,
        tenant=str(session.tenant_id),
        model=session.model,
        system=parameters.get("system"),
        tools=parameters.get("tools"),
        request=parameters.get("request"),
        settings=session.settings,
        query_source=session.query_source,
    )


def _order(job: JobRow) -> Order:
    return Order(
        job_id=job.id,
        trigger=job.trigger,
        scope=job.scope,
        instructions=job.instructions,
        strategy=job.strategy,
        fallback=job.fallback,
        force=job.force,
        token_gap=job.token_gap,
    )

