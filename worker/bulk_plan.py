"""The plan of a bulk run: which sessions it finds, what each would cost, and which are skipped and why.

A page of sessions is read, judged and stored in one transaction, so that a plan goes on where it was stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from compaction.core import breaker, bulk, jsonbytes, policy, tokens, wire
from compaction.core.bulk import ItemSkip
from compaction.core.messages import Message, Usage, conversation, decode_message
from compaction.errors import Internal
from compaction.settings import Settings
from compaction.store import bulk_items, bulk_plans, bulk_runs, clock, sessions
from compaction.store.bulk_items import NewItem
from compaction.store.bulk_plans import Earlier, Found
from compaction.store.bulk_runs import RunRow
from compaction.store.engine import Connection
from compaction.store.histories import StoredMessage
from compaction.summarizers import models

PAGE_SESSIONS = 200  # a page of small sessions takes about half a second and its transaction no longer
GROUP_BYTES = 8 * 2**20  # of messages read at once; a larger session is read by itself


@dataclass(frozen=True, slots=True)
class _Sized:
    """What the messages of a session say."""

    content_hash: str
    tokens: int
    problem: ItemSkip | None = None


_UNREADABLE = _Sized("", 0, "invalid_session")


class Planner:
    """Plans page by page. `settings` say which summarizer writes and which model, where the run does not."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def step(self, conn: Connection, run: RunRow) -> None:
        """Plans the next page of a locked run, or ends its plan."""
        found = await bulk_plans.page(conn, run, PAGE_SESSIONS)
        at = await clock.read(conn)
        for group in _groups(found):
            items = await self._read(conn, run, group, at)
            await bulk_items.add(conn, run, await self._checked(conn, run, items))
        if found:
            await bulk_runs.planned_through(conn, run, found[-1].session.id)
        if len(found) < PAGE_SESSIONS:
            await bulk_runs.planned(conn, run, *self._way(run))

    def _way(self, run: RunRow) -> tuple[bulk.Way, str | None]:
        """The way that is possible here, and why when it is not the one that was asked for."""
        if run.way == "live":
            return "live", None
        if not self._settings.uses_claude:
            return "live", "The summarizer here is extractive and has no batches; the run goes live."
        return run.way, None

    async def _read(self, conn: Connection, run: RunRow, group: Sequence[Found], at: datetime) -> list[NewItem]:
        """The items of a group. A session whose stored bodies are damaged is told apart, and stops no plan."""
        try:
            originals = await bulk_plans.originals(conn, group)
            return await asyncio.to_thread(self._items, run, group, originals, at)
        except Internal:
            if len(group) == 1:
                return [self._judged(run, group[0], _UNREADABLE, at)]
        return [item for one in group for item in await self._read(conn, run, [one], at)]

    def _items(
        self, run: RunRow, found: Sequence[Found], originals: dict[int, list[StoredMessage]], at: datetime
    ) -> list[NewItem]:
        least = bulk_plans.selection_of(run).min_tokens or 0
        items = (self._judged(run, one, _sized(one, originals.pop(one.session.id)), at) for one in found)
        return [item for item in items if item.tokens >= least]

    def _judged(self, run: RunRow, one: Found, sized: _Sized, at: datetime) -> NewItem:
        model = run.model or self._settings.summary_model or one.session.model
        dollars = self._live_usd(model, sized.tokens)
        reason = self._skip_reason(run, one, at) or sized.problem
        if reason is None and dollars is None and run.max_usd is not None:
            reason = "no_price"
        return NewItem(
            session_id=one.session.id,
            state="found" if reason is None else "skipped",
            reason=reason,
            content_hash=sized.content_hash,
            recipe=self._recipe(run, model),
            covers_through_seq=one.session.head_seq,
            tokens=sized.tokens,
            live_usd=dollars,
        )

    def _skip_reason(self, run: RunRow, one: Found, at: datetime) -> ItemSkip | None:
        is_open = breaker.is_open(one.breaker, at, self._settings.breaker_cooldown_seconds)
        if is_open and not run.force:
            return "circuit_open"
        return "recursion_guard" if one.session.query_source in policy.RECURSIVE_SOURCES else None

    def _recipe(self, run: RunRow, model: str) -> str:
        summarizer = "claude" if self._settings.uses_claude else "extractive"
        return bulk.recipe(
            prompt_version=run.prompt_version,
            summarizer=summarizer,
            strategy=run.strategy,
            model=model,
            instructions=run.instructions,
        )

    def _live_usd(self, model: str, count: int) -> Decimal | None:
        """What a live call will probably cost; nothing where no model is called."""
        if not self._settings.uses_claude:
            return Decimal(0)
        window = models.limits_for(model).context_window_tokens
        prompt = min(count + bulk.PROMPT_TOKENS, window)
        return models.price(model, Usage(input_tokens=prompt, output_tokens=bulk.SUMMARY_TOKENS))

    @staticmethod
    async def _checked(conn: Connection, run: RunRow, items: Sequence[NewItem]) -> list[NewItem]:
        """The items without those that were paid for already, or that would fail again."""
        keys = {item.session_id: (item.recipe, item.content_hash) for item in items if item.state == "found"}
        before = await bulk_plans.earlier(conn, run, keys)
        return [_after_earlier(item, before.get(item.session_id), force=run.force) for item in items]


def _after_earlier(item: NewItem, before: Earlier | None, *, force: bool) -> NewItem:
    if before is None or item.state != "found":
        return item
    if before.state == "succeeded":
        return replace(item, state="skipped", reason="unchanged")
    if before.error_code in bulk.FINAL_FAILURES and not force:
        return replace(item, state="skipped", reason="failed_before")
    return item


def _groups(found: Sequence[Found]) -> Iterator[list[Found]]:
    """Neighbours whose messages together are no more than GROUP_BYTES."""
    group: list[Found] = []
    size = 0
    for one in found:
        if group and size + one.body_bytes > GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append(one)
        size += one.body_bytes
    if group:
        yield group


def _sized(one: Found, stored: Sequence[StoredMessage]) -> _Sized:
    try:
        messages: tuple[Message, ...] = tuple(decode_message(message.body, seq=message.seq) for message in stored)
        given = {name: jsonbytes.decode(raw) for name, raw in sessions.parameters_in(one.parameters).items()}
    except ValueError:
        return _UNREADABLE
    counted = tokens.session_tokens(messages, system=given.get("system"), tools=given.get("tools"))
    problem: ItemSkip | None = "nothing_to_compact" if policy.nothing_to_compact(messages) else None
    return _Sized(wire.prefix_hash(conversation(messages)), counted.tokens, problem)
