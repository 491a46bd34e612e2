"""Workers: which processes are alive, and how busy they are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Boolean, Double, Integer, Text, bindparam, cast, delete, extract, func, literal_column, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.store import plain
from compaction.store.tables import provider_pauses, workers


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker process. `loop_lag_seconds` is how late its event loop was, `silent_seconds` how long ago it beat."""

    owner: str
    slots: int
    running: int
    loop_lag_seconds: float
    draining: bool
    started_at: datetime
    beat_at: datetime
    silent_seconds: float
    provider: str | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """Slots of workers whose provider is open; `trial_token`: later leases belong to workers on trial."""

    slots: int
    trial_token: int | None = None


_OWNER = bindparam("b_owner", type_=Text)
_FACTS = {
    "slots": bindparam("b_slots", type_=Integer),
    "running": bindparam("b_running", type_=Integer),
    "loop_lag_seconds": bindparam("b_lag", type_=Double),
    "draining": bindparam("b_draining", type_=Boolean),
    "provider": bindparam("b_provider", type_=Text),
}
_BEAT = (
    upsert(workers)
    .values(owner=_OWNER, **_FACTS)
    .on_conflict_do_update(index_elements=["owner"], set_={**_FACTS, "beat_at": func.now()})
)
_FORGET = delete(workers).where(workers.c.owner == _OWNER)
_FORGET_SILENT = delete(workers).where(
    workers.c.beat_at < func.now() - bindparam("b_seconds", type_=Double) * literal_column("interval '1 second'")
)
_LIST = select(workers, cast(extract("epoch", func.now() - workers.c.beat_at), Double)).order_by(workers.c.owner)

_PHASE = func.coalesce(provider_pauses.c.phase, literal_column("'open'"))
_CAPACITY = (
    select(_PHASE, func.sum(workers.c.slots), func.max(provider_pauses.c.trial_token))
    .outerjoin(provider_pauses, provider_pauses.c.provider == workers.c.provider)
    .where(
        ~workers.c.draining,
        workers.c.beat_at > func.now() - bindparam("b_seconds", type_=Double) * literal_column("interval '1 second'"),
    )
    .group_by(_PHASE)
)
_SHARERS = (
    select(func.count())
    .select_from(workers)
    .where(
        workers.c.provider == bindparam("b_provider", type_=Text),
        workers.c.beat_at > func.now() - bindparam("b_seconds", type_=Double) * literal_column("interval '1 second'"),
    )
)


async def beat_worker(  # noqa: PLR0913, PLR0917 - what a worker says of itself
    conn: AsyncConnection,
    owner: str,
    slots: int,
    running: int,
    lag: float,
    draining: bool,  # noqa: FBT001 - the contract
    provider: str | None = None,
) -> None:
    """Says that the process lives; `lag` in seconds. `provider` names whose credential it calls a model with."""
    values = {"b_slots": slots, "b_running": running, "b_lag": min(lag, 99_999.0), "b_draining": draining}
    await conn.execute(_BEAT, values | {"b_owner": plain.text("owner", owner), "b_provider": provider})


async def capacity(conn: AsyncConnection, silent_seconds: float) -> Capacity:
    """What the living workers can take: those that beat within `silent_seconds` and do not leave."""
    found = await conn.execute(_CAPACITY, {"b_seconds": silent_seconds})
    slots = {phase: (count, token) for phase, count, token in found}
    _, token = slots.get("trial", (0, None))
    return Capacity(slots.get("open", (0, None))[0], token if "trial" in slots else None)


async def forget(conn: AsyncConnection, owner: str) -> None:
    """The process ends in good order."""
    await conn.execute(_FORGET, {"b_owner": owner})


async def forget_silent(conn: AsyncConnection, seconds: float) -> int:
    """Forgets processes that did not beat for so long; tells how many."""
    return (await conn.execute(_FORGET_SILENT, {"b_seconds": seconds})).rowcount


async def sharers(conn: AsyncConnection, provider: str, silent_seconds: float) -> int:
    """How many living workers use this credential."""
    count: int = (await conn.execute(_SHARERS, {"b_provider": provider, "b_seconds": silent_seconds})).scalar_one()
    return count


async def list_workers(conn: AsyncConnection) -> list[WorkerRow]:
    """All processes that are known."""
    listed = await conn.execute(_LIST)
    return [
        WorkerRow(owner, slots, running, float(lag), draining, started_at, beat_at, silent, provider)
        for owner, slots, running, lag, draining, started_at, beat_at, provider, silent in listed
    ]
