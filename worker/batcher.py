"""A bulk run's way through Message Batches: gathers requests, sends them, looks after batches, takes over answers.

Order is what makes it safe. The batch is a row before the provider hears of it; its id is written as soon as it is
told; answers are written item by item, and taking them over twice changes nothing. After a crash between the first two
the provider is asked for batches that nobody knows, because creating one is not idempotent.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from compaction import telemetry
from compaction.core import bulk, jsonbytes
from compaction.core.bulk import MAX_MISSES, ItemState, Load
from compaction.errors import Conflict, ProviderError, Unavailable
from compaction.ports import BatchAnswer, BatchRequest, BatchState, MessageBatches
from compaction.store import bulk_adoptions, bulk_batches, bulk_claims, bulk_items
from compaction.store.bulk_batches import Asked, BatchRow, Candidate, ItemAnswer
from compaction.store.bulk_items import BulkOrder
from compaction.store.bulk_runs import RunRow
from compaction.store.engine import Connection, Database
from compaction.summarizers.models import BATCH_FACTOR
from worker import batch_replay
from worker.assignment import Assignments
from worker.recorder import encode_paid

GATHER_SECONDS = 2.0  # a batch is closed after so long: what a crash loses is gathered again
GATHER_ITEMS = 1_000  # rows looked at in one go
MAX_REQUESTS = 100_000  # of one batch: facts/anthropic.md §4
MARGIN_BYTES = 200  # of a request in the batch's body beside its own: name and punctuation
ANSWERS_AT_ONCE = 50  # in one transaction; a summary has some kilobytes
CLOCK_SKEW = timedelta(seconds=60)  # between our clock and the provider's, when batches are searched by their time
REFUSED_SECONDS = 60.0  # until items of a refused batch are sent again

_log = telemetry.logger("bulk")


@dataclass(slots=True)
class _Pack:
    """A batch that is being filled."""

    max_bytes: int
    requests: dict[int, bytes] = field(default_factory=dict)  # by item
    size: int = 0

    @property
    def is_full(self) -> bool:
        return self.size >= self.max_bytes or len(self.requests) >= MAX_REQUESTS

    def takes(self, body: bytes) -> bool:
        """Whether it still has room; the first request always has."""
        return not self.requests or self.size + len(body) + MARGIN_BYTES <= self.max_bytes

    def add(self, item_id: int, body: bytes) -> None:
        self.requests[item_id] = body
        self.size += len(body) + MARGIN_BYTES


class Batcher:
    """Steps of runs that go by batches; none of its transactions is open while the provider is asked."""

    def __init__(  # noqa: PLR0913 - the composition root passes each part by name
        self,
        database: Database,
        batches: MessageBatches,
        assignments: Assignments,
        *,
        max_bytes: int,
        poll_seconds: float,
        grace_seconds: float,
    ) -> None:
        self._database = database
        self._batches = batches
        self._assignments = assignments
        self._max_bytes = max_bytes
        self._poll_seconds = poll_seconds
        self._grace_seconds = grace_seconds
        self._poll_at: dict[int, float] = {}
        self._cancelled: set[int] = set()

    async def step(self, run: RunRow) -> bool:
        """Whatever the run's batches and items need now; whether anything was moved."""
        async with self._database.connect() as conn:
            unended = await bulk_batches.unended(conn, run)
        moved = False
        try:
            for batch in unended:
                moved |= await self._look_after(run, batch)
            if run.state == "running" and not any(batch.state == "intended" for batch in unended):
                moved |= await self._gather(run)
        except ProviderError as error:
            _log.warning("bulk.provider_missed", run_id=run.id, code=error.code)
        return moved

    async def _look_after(self, run: RunRow, batch: BatchRow) -> bool:
        if time.monotonic() < self._poll_at.get(batch.id, 0.0):
            return False
        self._poll_at[batch.id] = time.monotonic() + self._poll_seconds
        if batch.provider_id is None:
            return await self._search(run, batch)  # what is found may be a stranger's: it is cancelled by nobody
        if run.state == "cancelling" and not batch.adopted and batch.id not in self._cancelled:
            await self._batches.cancel(batch.provider_id)
            self._cancelled.add(batch.id)
        state = await self._batches.retrieve(batch.provider_id)
        if not state.has_ended:
            return False
        return await self._take_over(batch, batch.provider_id, state)

    async def _search(self, run: RunRow, batch: BatchRow) -> bool:
        """After a crash: a batch of this size that nobody knows is this one, until its answers say otherwise."""
        found = await self._batches.newest(batch.created_at - CLOCK_SKEW)
        async with self._database.begin() as conn:
            known = await bulk_adoptions.known(conn, run, [state.id for state in found])
            for state in found:
                if state.id not in known and state.requests == batch.requests:
                    await bulk_adoptions.adopt(conn, batch.id, state.id)
                    _log.warning("bulk.batch_found", batch=state.id)
                    return True
            if batch.age_seconds < self._grace_seconds:
                return False
            await bulk_batches.give_up(conn, batch.id, 0.0, code=None)
        _log.warning("bulk.batch_never_sent", requests=batch.requests)
        return True

    async def _gather(self, run: RunRow) -> bool:
        """Fills a batch and sends it; items whose answers are complete become jobs."""
        async with self._database.connect() as conn:
            items = await self._candidates(conn, run)
        pack, moved, until = _Pack(self._max_bytes), False, time.monotonic() + GATHER_SECONDS
        for item in items:
            step = await self._next_step(run, item)
            if step.request is not None:
                body = self._batches.body_of(step.request)
                if not pack.takes(body):
                    break
                pack.add(item.id, body)
            else:
                moved |= await self._finished(run, item, step)
            if pack.is_full or time.monotonic() >= until:
                break
        return await self._send(run, pack) or moved

    async def _candidates(self, conn: Connection, run: RunRow) -> Sequence[Candidate]:
        """The items that sample and budget allow; what was begun is already reserved for."""
        standing = await bulk_items.standing(conn, run)
        new = GATHER_ITEMS if run.sample is None else run.sample - standing.begun
        found = await bulk_batches.candidates(conn, run, GATHER_ITEMS, new=new)
        begun = [item for item in found if not item.is_found]
        fresh = [item for item in found if item.is_found]
        reserved = Load(standing.reserved.tokens, standing.reserved.usd * BATCH_FACTOR)
        count, _ = bulk.affordable(run.budget, standing.spent.plus(reserved), map(_load, fresh))
        return [*begun, *fresh[:count]]

    async def _next_step(self, run: RunRow, item: Candidate) -> batch_replay.Step:
        async with self._database.connect() as conn:
            claim = await bulk_claims.claim_of(conn, run, item.session_id, item.covers_through_seq)
        if claim is None:
            return batch_replay.Step(failed="invalid_session")
        answers = [] if item.answers is None else jsonbytes.decode(item.answers)
        try:
            return await batch_replay.next_step(self._assignments, claim, BulkOrder(run.model), answers)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - one session that cannot be read must not stop the run
            _log.error("bulk.item_fault", run_id=run.id, item=item.id, **telemetry.failure(error))
            return batch_replay.Step(failed="internal")

    async def _finished(self, run: RunRow, item: Candidate, step: batch_replay.Step) -> bool:
        """An item that needs no further answer: it fails, or becomes a job. Whether it did."""
        async with self._database.begin() as conn:
            if step.failed is not None:
                await bulk_batches.fail(conn, run, item.id, step.failed)
                return True
            if step.paid is not None:
                return await bulk_batches.feed_paid(conn, run, item, encode_paid(step.paid)) is not None
            return bool(await bulk_items.feed(conn, run, [item.id]))

    async def _send(self, run: RunRow, pack: _Pack) -> bool:
        if not pack.requests:
            return False
        try:
            async with self._database.begin() as conn:
                batch_id, feeds = await bulk_batches.intend(conn, run, list(pack.requests))
        except Conflict:
            return False
        requests = [BatchRequest(custom_id(item_id, feeds[item_id]), body) for item_id, body in pack.requests.items()]
        pack.requests.clear()
        try:
            state = await self._batches.create(requests)
        except ProviderError as error:
            await self._not_sent(batch_id, error)
            return False
        async with self._database.begin() as conn:
            ours = await bulk_batches.sent(conn, batch_id, state.id)
        if not ours:  # another leader gave us up: its batch is the one that counts
            await self._batches.cancel(state.id)
        _log.info("bulk.batch_sent", run_id=run.id, batch=state.id, requests=len(requests))
        return True

    async def _not_sent(self, batch_id: int, error: ProviderError) -> None:
        """A refusal was no batch; of anything else nobody knows, and the search will tell."""
        _log.warning("bulk.batch_not_sent", code=error.code, status=error.status)
        if error.status is None or error.status >= 500:  # noqa: PLR2004 - the provider's own failures
            return
        passing = error.pauses_provider or error.retryable
        async with self._database.begin() as conn:
            await bulk_batches.give_up(conn, batch_id, REFUSED_SECONDS, code=None if passing else error.code)

    async def _take_over(self, batch: BatchRow, provider_id: str, state: BatchState) -> bool:
        """Writes the answers of a batch that has ended, some at a time."""
        waiting: list[BatchAnswer] = []
        places: set[tuple[int, int]] = set()
        is_ours = not batch.adopted
        async for answer in self._batches.answers(provider_id):
            waiting.append(answer)
            if len(waiting) >= ANSWERS_AT_ONCE:
                is_ours |= await self._write(batch, waiting)
                places, waiting = places or _places(waiting), []
        is_ours |= await self._write(batch, waiting)
        places = places or _places(waiting)
        async with self._database.begin() as conn:
            if is_ours or not await bulk_batches.waits_for(conn, batch.id):
                await bulk_batches.end(conn, batch.id, dict(state.counts))
            elif not await bulk_adoptions.hand_over(conn, batch, provider_id, places):
                await bulk_adoptions.replace(conn, batch)
        self._poll_at.pop(batch.id, None)
        return True

    async def _write(self, batch: BatchRow, answers: Sequence[BatchAnswer]) -> bool:
        """Whether any of them was for an item of this batch."""
        places = {place: answer for answer in answers if (place := _place(answer.custom_id)) is not None}
        async with self._database.begin() as conn:
            known = await bulk_batches.asked_of(conn, batch.id, [item_id for item_id, _ in places])
            told = [
                _judged(item_id, known[item_id], answer)
                for (item_id, feeds), answer in places.items()
                if item_id in known and known[item_id].feeds == feeds
            ]
            await bulk_batches.take_over(conn, batch.id, told)
        return bool(told)


def custom_id(item_id: int, feeds: int) -> str:
    """The name of an item's request in a batch: another one each time it is sent."""
    return f"{bulk.custom_id(item_id)}-{feeds}"


def _place(name: str) -> tuple[int, int] | None:
    """Item and sending behind a name; None for a stranger's."""
    parts = name.split("-")
    if len(parts) != 3 or parts[0] != "item" or not (parts[1].isdecimal() and parts[2].isdecimal()):  # noqa: PLR2004 - item, id, sending
        return None
    return int(parts[1]), int(parts[2])


def _places(answers: Sequence[BatchAnswer]) -> set[tuple[int, int]]:
    """The items and sendings that answers are for."""
    return {place for answer in answers if (place := _place(answer.custom_id)) is not None}


def _judged(item_id: int, asked: Asked, answer: BatchAnswer) -> ItemAnswer:
    """What an answer makes of its item: looked at, sent again, or ended. Cuts are the pipeline's to count."""
    last = asked.misses >= MAX_MISSES - 1
    if answer.kind == "canceled":
        return ItemAnswer(item_id, asked.feeds, "cancelled", None)
    if answer.kind == "expired":
        return ItemAnswer(item_id, asked.feeds, "expired" if last else "batched", None, missed=True)
    if answer.kind == "errored":
        error = batch_replay.refusal_in(answer.document)
        if error.retryable or error.pauses_provider:
            state: ItemState = "failed" if last else "batched"
            return ItemAnswer(item_id, asked.feeds, state, None, error.code if last else None, missed=True)
    answers = batch_replay.with_answer(asked.answers, answer)
    return ItemAnswer(item_id, asked.feeds, "batched", answers, spent=batch_replay.spent_on(answer, ""))


def _load(item: Candidate) -> Load:
    dollars = None if item.live_usd is None else item.live_usd * BATCH_FACTOR
    return bulk.expected_load(item.tokens, dollars)
