"""Bulk runs as rows: made, looked at, paused, resumed, cancelled and ended. Their sessions are in `bulk_items`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, case, exists, func, insert, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.bulk import AT_WORK, PAUSABLE, RESUMABLE, UNDER_WAY, Budget, EndReason, RunState, Way
from compaction.core.jobs import StrategyName
from compaction.core.jsonbytes import Json
from compaction.core.prompts import PROMPT_VERSION
from compaction.store import cursors, plain
from compaction.store.bulk_tables import bulk_items, bulk_runs
from compaction.store.tables import sessions

MAX_ACTIVE = 100  # runs that one turn of the leader takes up; the next turn takes others up first


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """What an owner asks for."""

    tenant_id: int
    selection: Mapping[str, Json]
    way: Way = "live"
    dry_run: bool = False
    model: str | None = None
    strategy: StrategyName | None = None
    instructions: str | None = field(default=None, repr=False)
    force: bool = False
    sample: int | None = None
    max_usd: Decimal | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run; all times are Postgres's."""

    id: str
    tenant_id: int
    state: RunState
    resume_to: RunState | None
    dry_run: bool
    selection: dict[str, Json]
    way: Way
    way_note: str | None
    model: str | None
    strategy: StrategyName | None
    instructions: str | None = field(repr=False)
    force: bool
    sample: int | None
    max_usd: Decimal | None
    max_tokens: int | None
    prompt_version: int
    after_session_id: int
    through_session_id: int
    end_reason: EndReason | None
    created_at: datetime
    planned_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def budget(self) -> Budget:
        """The most it may spend."""
        return Budget(self.max_usd, self.max_tokens)


_COLUMNS = tuple(bulk_runs.c[name] for name in RunRow.__dataclass_fields__)


async def create(conn: AsyncConnection, new: NewRun) -> RunRow:
    """A new run, to be planned by the leading worker. Sessions that come after it are not its own."""
    newest = select(func.coalesce(func.max(sessions.c.id), 0)).scalar_subquery()
    made = insert(bulk_runs).values(
        tenant_id=new.tenant_id,
        selection=_checked(new.selection),
        way=new.way,
        dry_run=new.dry_run,
        model=plain.optional_text("model", new.model),
        strategy=new.strategy,
        instructions=plain.optional_text("instructions", new.instructions),
        force=new.force,
        sample=new.sample,
        max_usd=new.max_usd,
        max_tokens=plain.optional_number("max_tokens", new.max_tokens),
        prompt_version=PROMPT_VERSION,
        through_session_id=newest,
    )
    return _row((await conn.execute(made.returning(*_COLUMNS))).one())


async def get(conn: AsyncConnection, tenant_id: int, run_id: str) -> RunRow | None:
    """The tenant's run."""
    known = plain.job_id(run_id)
    if known is None:
        return None
    wanted = select(*_COLUMNS).where(bulk_runs.c.id == known, bulk_runs.c.tenant_id == tenant_id)
    row = (await conn.execute(wanted)).one_or_none()
    return None if row is None else _row(row)


async def list_runs(
    conn: AsyncConnection, tenant_id: int, *, limit: int = 50, cursor: str | None = None
) -> tuple[list[RunRow], str | None]:
    """The tenant's runs, newest first, and the cursor of the next page. Raises InvalidRequest for a made-up cursor."""
    wanted = select(*_COLUMNS).where(bulk_runs.c.tenant_id == tenant_id)
    if (before := cursors.decode_uuid(cursor)) is not None:
        wanted = wanted.where(bulk_runs.c.id < before)
    found = [_row(row) for row in await conn.execute(wanted.order_by(bulk_runs.c.id.desc()).limit(limit + 1))]
    page = found[:limit]
    return page, cursors.encode_uuid(page[-1].id) if len(found) > limit else None


async def pause(conn: AsyncConnection, tenant_id: int, run_id: str) -> RunRow | None:
    """Stops feeding; what is under way goes on. A run that is not at work stays as it is."""
    at_work = bulk_runs.c.state.in_(PAUSABLE)
    return await _changed(
        conn,
        tenant_id,
        run_id,
        state=case((at_work, "paused"), else_=bulk_runs.c.state),
        resume_to=case((at_work, bulk_runs.c.state), else_=bulk_runs.c.resume_to),
    )


async def resume(conn: AsyncConnection, tenant_id: int, run_id: str) -> RunRow | None:
    """Goes on where a pause, a plan or a sample stopped; any other run stays as it is."""
    stands = bulk_runs.c.state.in_(RESUMABLE)
    looked_at = bulk_runs.c.state == "sampled"
    return await _changed(
        conn,
        tenant_id,
        run_id,
        state=case((stands, func.coalesce(bulk_runs.c.resume_to, "running")), else_=bulk_runs.c.state),
        resume_to=None,
        sample=case((looked_at, None), else_=bulk_runs.c.sample),
        started_at=case((stands, func.coalesce(bulk_runs.c.started_at, func.now())), else_=bulk_runs.c.started_at),
    )


async def cancel(conn: AsyncConnection, tenant_id: int, run_id: str) -> RunRow | None:
    """Asks for the end; one that has ended stays as it is."""
    over = bulk_runs.c.state == "ended"
    return await _changed(
        conn, tenant_id, run_id, state=case((over, bulk_runs.c.state), else_="cancelling"), resume_to=None
    )


async def take_up(conn: AsyncConnection) -> list[str]:
    """The next runs with something to do, oldest first: those that waited longest for a turn, which begins now.

    A plan that somebody looks at, a sample or a pause has work only while something of it is under way.
    """
    waits = (bulk_items.c.state == "queued") | ((bulk_items.c.state == "batched") & bulk_items.c.batch_id.is_not(None))
    under_way = exists().where(bulk_items.c.run_id == bulk_runs.c.id, bulk_items.c.state.in_(UNDER_WAY), waits)
    next_ones = (
        select(bulk_runs.c.id)
        .where(bulk_runs.c.state != "ended", bulk_runs.c.state.in_(AT_WORK) | under_way)
        .order_by(bulk_runs.c.stepped_at, bulk_runs.c.id)
        .limit(MAX_ACTIVE)
        .with_for_update(skip_locked=True, key_share=True)
        .cte("next_ones")
    )
    taken = update(bulk_runs).where(bulk_runs.c.id == next_ones.c.id).values(stepped_at=func.clock_timestamp())
    return sorted((await conn.execute(taken.returning(bulk_runs.c.id))).scalars())


async def take(conn: AsyncConnection, run_id: str) -> RunRow | None:
    """The run, locked for one step of it; None while another step or another leader has it."""
    wanted = select(*_COLUMNS).where(bulk_runs.c.id == run_id).with_for_update(skip_locked=True, key_share=True)
    row = (await conn.execute(wanted)).one_or_none()
    return None if row is None else _row(row)


async def planned_through(conn: AsyncConnection, run: RunRow, after_session_id: int) -> None:
    """Remembers how far the plan has come."""
    await conn.execute(_of(run).values(after_session_id=after_session_id))


async def planned(conn: AsyncConnection, run: RunRow, way: Way, way_note: str | None) -> None:
    """The plan is complete: a dry run stops here, another begins."""
    begins = {"state": "ready"} if run.dry_run else {"state": "running", "started_at": func.now()}
    await conn.execute(_of(run).values(planned_at=func.now(), way=way, way_note=way_note, **begins))


async def re_routed(conn: AsyncConnection, run: RunRow, way: Way, way_note: str) -> None:
    """Goes on by another way, and says why."""
    await conn.execute(_of(run).values(way=way, way_note=way_note))


async def sampled(conn: AsyncConnection, run: RunRow) -> None:
    """The sample is done; somebody looks at it and resumes or cancels."""
    await conn.execute(_of(run).values(state="sampled"))


async def end(conn: AsyncConnection, run: RunRow, reason: EndReason) -> None:
    """The run is over."""
    await conn.execute(_of(run).values(state="ended", end_reason=reason, ended_at=func.now(), resume_to=None))


def _of(run: RunRow) -> Any:  # noqa: ANN401 - SQLAlchemy's own type
    return update(bulk_runs).where(bulk_runs.c.id == run.id)


async def _changed(
    conn: AsyncConnection,
    tenant_id: int,
    run_id: str,
    **values: Any,  # noqa: ANN401 - any column
) -> RunRow | None:
    known = plain.job_id(run_id)
    if known is None:
        return None
    changed = update(bulk_runs).where(bulk_runs.c.id == known, bulk_runs.c.tenant_id == literal(tenant_id, BigInteger))
    row = (await conn.execute(changed.values(**values).returning(*_COLUMNS))).one_or_none()
    return None if row is None else _row(row)


def _row(row: Any) -> RunRow:  # noqa: ANN401 - a row of _COLUMNS
    return RunRow(**row._mapping)  # noqa: SLF001 - the public name of a row's mapping


def _checked(selection: Mapping[str, Json]) -> dict[str, Json]:
    """The selection, if jsonb can carry it. Raises InvalidRequest."""
    plain.json_text("selection", dict(selection))
    return dict(selection)
