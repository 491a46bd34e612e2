"""What a bulk run's plan reads: the sessions of its selection page by page, and their messages as producers gave them.

Compacted anew means from what the producer stored since its own newest boundary: results of ours are left aside, so
that a better prompt or model works on the conversation and not on an older summary of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, bindparam, column, func, literal_column, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.breaker import BreakerState
from compaction.core.bulk import Selection
from compaction.store import bodies, session_rows
from compaction.store.bulk_runs import RunRow
from compaction.store.bulk_tables import bulk_items
from compaction.store.histories import StoredMessage
from compaction.store.session_rows import SessionRow
from compaction.store.tables import breakers, messages, results, sessions

_SESSION_COLUMNS = len(SessionRow.__dataclass_fields__)
_DAY: ColumnElement[Any] = literal_column("interval '1 day'")


@dataclass(frozen=True, slots=True)
class Found:
    """A session of the selection. `body_bytes` is the size of the messages that would be compacted."""

    session: SessionRow
    parameters: bytes | None = field(repr=False)
    breaker: BreakerState
    body_bytes: int


@dataclass(frozen=True, slots=True)
class Earlier:
    """How an item of an earlier run with this key ended."""

    state: str
    error_code: str | None


def selection_of(run: RunRow) -> Selection:
    """The run's selection as it was stored."""
    given: dict[str, Any] = dict(run.selection)
    if given.get("session_ids") is not None:
        given["session_ids"] = tuple(given["session_ids"])
    return Selection(**given)


async def page(conn: AsyncConnection, run: RunRow, limit: int) -> list[Found]:
    """The next sessions of the run's selection, in the order of their ids."""
    size = (
        select(func.coalesce(func.sum(messages.c.body_bytes), 0))
        .where(
            messages.c.session_id == sessions.c.id, messages.c.seq >= sessions.c.boundary_seq, ~messages.c.off_branch
        )
        .scalar_subquery()
    )
    breaker = (breakers.c.failures, breakers.c.opened_at, breakers.c.last_error_code)
    wanted = (
        select(*session_rows.COLUMNS, sessions.c.parameters, *breaker, size)
        .outerjoin(breakers, breakers.c.session_id == sessions.c.id)
        .outerjoin(results, results.c.job_id == sessions.c.live_job_id)
        .where(
            sessions.c.tenant_id == run.tenant_id,
            ~sessions.c.is_ephemeral,  # an inline job's messages are nobody's archive
            sessions.c.id > run.after_session_id,
            sessions.c.id <= run.through_session_id,
        )
    )
    wanted = _chosen(wanted, selection_of(run)).order_by(sessions.c.id).limit(limit)
    return [_found(row) for row in await conn.execute(wanted)]


async def originals(conn: AsyncConnection, found: Sequence[Found]) -> dict[int, list[StoredMessage]]:
    """The messages of the sessions from their newest stored boundary on, by our session id, oldest first."""
    if not found:
        return {}
    place = (
        func.unnest(bindparam("b_ids", type_=ARRAY(BigInteger)), bindparam("b_begins", type_=ARRAY(BigInteger)))
        .table_valued(column("id", BigInteger), column("begins", BigInteger), name="place")
        .render_derived()
    )
    wanted = (
        select(messages.c.session_id, messages.c.seq, messages.c.body)
        .join(place, place.c.id == messages.c.session_id)
        .where(messages.c.seq >= place.c.begins, ~messages.c.off_branch)
        .order_by(messages.c.session_id, messages.c.seq)
    )
    rows = await conn.execute(
        wanted,
        {"b_ids": [one.session.id for one in found], "b_begins": [one.session.boundary_seq for one in found]},
    )
    read: dict[int, list[StoredMessage]] = {one.session.id: [] for one in found}
    for session_id, seq, body in rows:
        read[session_id].append(StoredMessage(seq, bodies.unpack(body)))
    return read


async def earlier(conn: AsyncConnection, run: RunRow, keys: Mapping[int, tuple[str, str]]) -> dict[int, Earlier]:
    """What was done already with a session of this recipe and content: by our session id, {id: (recipe, hash)}.

    Of a success only while its result is there: an owner may have deleted it, or retention.
    """
    if not keys:
        return {}
    wanted = (
        select(
            bulk_items.c.session_id,
            bulk_items.c.recipe,
            bulk_items.c.content_hash,
            bulk_items.c.state,
            bulk_items.c.error_code,
        )
        .outerjoin(results, results.c.job_id == bulk_items.c.job_id)
        .where(
            bulk_items.c.session_id == func.any(bindparam("b_ids", type_=ARRAY(BigInteger))),
            bulk_items.c.run_id != run.id,
            (bulk_items.c.state == "failed") | ((bulk_items.c.state == "succeeded") & results.c.job_id.is_not(None)),
        )
        .order_by(bulk_items.c.id)
    )
    rows = await conn.execute(wanted, {"b_ids": list(keys)})
    return {
        session_id: Earlier(state, code)
        for session_id, recipe, content_hash, state, code in rows
        if keys[session_id] == (recipe, content_hash)
    }


def _chosen(wanted: Select[Any], selection: Selection) -> Select[Any]:
    given = selection
    if given.session_ids is not None:
        wanted = wanted.where(sessions.c.name.in_(given.session_ids))
    if given.id_prefix is not None:
        wanted = wanted.where(sessions.c.name.startswith(given.id_prefix, autoescape=True))
    if given.model is not None:
        wanted = wanted.where(sessions.c.model == given.model)
    if given.idle_days is not None:
        wanted = wanted.where(sessions.c.updated_at <= func.now() - given.idle_days * _DAY)
    if given.changed_within_days is not None:
        wanted = wanted.where(sessions.c.updated_at >= func.now() - given.changed_within_days * _DAY)
    if given.last_strategy is not None:
        wanted = wanted.where(results.c.strategy == given.last_strategy)
    if given.prompt_version_below is not None:
        wanted = wanted.where(func.coalesce(results.c.prompt_version, 0) < given.prompt_version_below)
    if given.breaker is not None:
        is_open = breakers.c.opened_at.is_not(None)
        wanted = wanted.where(is_open if given.breaker == "open" else ~is_open)
    return wanted


def _found(row: Sequence[Any]) -> Found:
    session, (parameters, failures, opened_at, code, size) = row[:_SESSION_COLUMNS], row[_SESSION_COLUMNS:]
    return Found(SessionRow(*session), parameters, BreakerState(failures or 0, opened_at, code), int(size))
