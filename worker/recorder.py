"""What an attempt leaves behind: events wait for the commit, progress for the pulse, paid summaries do not wait."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from compaction.core import jobs, jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import usage_from
from compaction.errors import LeaseLost, PromptTooLong, Unavailable
from compaction.ports import PaidSummary
from compaction.store import jobs as job_rows
from compaction.store.engine import Database
from worker import metrics

SAVE_PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)  # a restarted Postgres is back by then; the lease lasts longer
MAX_EVENTS = 200  # an attempt makes a handful; more is a loop


class AttemptRecorder:
    """The Recorder port for one claimed attempt."""

    def __init__(self, database: Database, job_id: str, token: int) -> None:
        self._database = database
        self._job_id = job_id
        self._token = token
        self.events: list[tuple[str, dict[str, Json]]] = []
        self.progress: dict[str, Json] | None = None  # the newest step that no pulse has written yet

    def event(self, name: str, fields: dict[str, Json]) -> None:
        """Keeps the event for the commit."""
        if len(self.events) < MAX_EVENTS:
            self.events.append((name, fields))

    def step(self, step: str, percent: int) -> None:
        """Keeps the step for the next pulse."""
        self.progress = {"step": step, "percent": percent}

    async def before_call(self) -> None:
        """Counts one model call durably. Raises PromptTooLong at the ninth, LeaseLost when the job is another's."""
        async with self._database.connect() as conn:
            counted = await job_rows.count_model_call(conn, self._job_id, self._token, jobs.MAX_MODEL_CALLS)
        if not counted:
            raise PromptTooLong(f"The job used up its {jobs.MAX_MODEL_CALLS} model calls without a usable summary.")
        metrics.LLM_REQUESTS.inc()

    async def save_summary(self, summary: PaidSummary) -> None:
        """Stores the paid summary under the lease, with patience for a database that is away. Raises LeaseLost."""
        body = encode_paid(summary)
        for pause_seconds in (*SAVE_PAUSES_SECONDS, None):
            try:
                async with self._database.connect() as conn:
                    saved = await job_rows.save_paid_summary(conn, self._job_id, self._token, body)
            except Unavailable:
                if pause_seconds is None:
                    raise
                await asyncio.sleep(pause_seconds)
            else:
                if not saved:
                    raise LeaseLost
                return


def encode_paid(summary: PaidSummary) -> bytes:
    """The checkpoint's JSON."""
    return jsonbytes.encode(asdict(summary))


def decode_paid(body: bytes) -> PaidSummary:
    """The summary in a checkpoint that `encode_paid` wrote."""
    fields = jsonbytes.decode(body)
    usage = usage_from(fields.pop("usage"))
    if usage is None:
        raise ValueError("a checkpoint without usage")
    return PaidSummary(usage=usage, **fields)
