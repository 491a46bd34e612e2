"""Provider pauses: one row per credential that ever failed for everybody. `core.pausing` draws the phases."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Double,
    Integer,
    Text,
    bindparam,
    case,
    column,
    func,
    literal_column,
    or_,
    select,
    table,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core import pausing
from compaction.core.pausing import Phase
from compaction.store import plain
from compaction.store.tables import lease_tokens, provider_pauses

PROBE_LEASE_SECONDS = 60.0  # who took a probe and died is followed by another one; a probe itself takes ten at most


@dataclass(frozen=True, slots=True)
class PauseRow:
    """A provider's state. `reason` is the error code of the last pause; `probe_at` matters while it is paused."""

    provider: str
    phase: Phase
    reason: str | None
    trips: int
    probes: int
    probe_at: datetime | None
    paused_at: datetime | None
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class Probe:
    """The right to probe: how often in a row the provider has been paused, and how many probes of this pause failed."""

    trips: int
    probes: int


@dataclass(frozen=True, slots=True)
class Paused:
    """What a failure found and made: the phase before it, and how often in a row the provider has been paused now."""

    before: Phase
    trips: int


_P = provider_pauses.c
_PROVIDER = bindparam("b_provider", type_=Text)
_MINE = _P.provider == _PROVIDER
_IS_PAUSED = _P.phase == literal_column("'paused'")
_NONE = literal_column("0", Integer)
_ONE = literal_column("1", Integer)
_LATER = func.now() + bindparam("b_seconds", type_=Double) * literal_column("interval '1 second'")
_PAUSED: ColumnElement[Any] = literal_column("'paused'")
_PAUSE = (
    upsert(provider_pauses)
    .values(
        provider=_PROVIDER, phase=_PAUSED, reason=bindparam("b_reason", type_=Text), trips=_ONE, paused_at=func.now()
    )
    .on_conflict_do_update(
        index_elements=["provider"],
        set_={
            "phase": _PAUSED,
            "reason": case((_IS_PAUSED, _P.reason), else_=literal_column("excluded.reason")),
            "trips": case((_IS_PAUSED, _P.trips), else_=_P.trips + _ONE),
            "probes": case((_IS_PAUSED, _P.probes), else_=_NONE),
            "paused_at": case((_IS_PAUSED, _P.paused_at), else_=func.now()),
            "changed_at": case((_IS_PAUSED, _P.changed_at), else_=func.now()),
        },
    )
    .returning(literal_column("old.phase", Text), _P.trips)
)
_SCHEDULE = update(provider_pauses).where(_MINE, _IS_PAUSED).values(probe_at=_LATER)
_TAKE_PROBE = (
    update(provider_pauses)
    .where(_MINE, _IS_PAUSED, or_(_P.probe_at.is_(None), _P.probe_at <= func.now()))
    .values(probe_at=_LATER)
    .returning(_P.trips, _P.probes)
)
_PROBE_FAILED = (
    update(provider_pauses)
    .where(_MINE, _IS_PAUSED)
    .values(probes=_P.probes + _ONE, probe_at=_LATER, reason=bindparam("b_reason", type_=Text))
)
_TOKENS = table(lease_tokens.name, column("last_value", BigInteger), column("is_called", Boolean))
_LAST_TOKEN = select(  # before the first token is drawn, the sequence shows the one that it will give
    _TOKENS.c.last_value - case((_TOKENS.c.is_called, _NONE), else_=_ONE)
).scalar_subquery()
_TRY = (
    update(provider_pauses)
    .where(_MINE, _IS_PAUSED)
    .values(phase=literal_column("'trial'"), changed_at=func.now(), trial_token=_LAST_TOKEN)
    .returning(_P.provider)
)
_OPEN = (
    update(provider_pauses)
    .where(_MINE, _P.phase == func.any(bindparam("b_phases", type_=ARRAY(Text))))
    .values(phase=literal_column("'open'"), changed_at=func.now(), trips=_NONE, probes=_NONE, probe_at=None)
    .returning(_P.provider)
)
_COLUMNS = [_P[name] for name in PauseRow.__dataclass_fields__]
_LIST = select(*_COLUMNS).order_by(_P.provider)
_PHASE = select(_P.phase).where(_MINE)


async def pause(conn: AsyncConnection, provider: str, reason: str, base_seconds: float) -> Paused:
    """Pauses the provider for everybody, or finds it paused; call it in a transaction.

    `reason` is an error code, `base_seconds` the operator's first pause before a retry, from which the first probe's
    time is told.
    """
    values = {"b_provider": plain.text("provider", provider), "b_reason": reason}
    before, trips = (await conn.execute(_PAUSE, values)).one()
    if before != "paused":
        delay = pausing.probe_delay_seconds(trips, 0, base_seconds)
        await conn.execute(_SCHEDULE, {"b_provider": provider, "b_seconds": delay})
    return Paused(before or "open", trips)


async def take_probe(conn: AsyncConnection, provider: str) -> Probe | None:
    """The right to probe the provider now; None when it is not paused, its time has not come or another one probes."""
    taken = await conn.execute(_TAKE_PROBE, {"b_provider": provider, "b_seconds": PROBE_LEASE_SECONDS})
    row = taken.one_or_none()
    return None if row is None else Probe(*row)


async def probe_failed(conn: AsyncConnection, provider: str, reason: str, delay_seconds: float) -> None:
    """The provider is still not to be used; the next probe comes after `delay_seconds`."""
    values = {"b_provider": provider, "b_reason": reason, "b_seconds": delay_seconds}
    await conn.execute(_PROBE_FAILED, values)


async def begin_trial(conn: AsyncConnection, provider: str) -> bool:
    """The probe was answered: one job at a time may call now. False when it is not paused any more."""
    return (await conn.execute(_TRY, {"b_provider": provider})).first() is not None


async def answered(conn: AsyncConnection, provider: str) -> bool:
    """A call on trial was answered: everybody may call again. False when there was no trial any more."""
    return await _open(conn, provider, "trial")


async def resume(conn: AsyncConnection, provider: str) -> bool:
    """An operator lets everybody call again; False when nothing was paused or on trial."""
    return await _open(conn, provider, "paused", "trial")


async def list_pauses(conn: AsyncConnection) -> list[PauseRow]:
    """All providers that were ever paused."""
    return [PauseRow(*row) for row in await conn.execute(_LIST)]


async def _open(conn: AsyncConnection, provider: str, *phases: Phase) -> bool:
    opened = await conn.execute(_OPEN, {"b_provider": plain.text("provider", provider), "b_phases": list(phases)})
    return opened.first() is not None


async def phase(conn: AsyncConnection, provider: str) -> Phase:
    """The provider's phase now."""
    found: Phase | None = (await conn.execute(_PHASE, {"b_provider": provider})).scalar_one_or_none()
    return found or "open"
