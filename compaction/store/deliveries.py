"""Deliveries of webhooks: claimed by a courier, and settled by what came of them. `store.delivery_log` reads them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Integer,
    Select,
    Text,
    bindparam,
    case,
    cast,
    extract,
    func,
    literal_column,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction import errors
from compaction.core.jsonbytes import Json
from compaction.core.webhooks import Verdict
from compaction.store import bodies
from compaction.store.tables import tenants, webhook_deliveries, webhook_endpoints
from compaction.store.tenant_walk import tenants_with

MAX_TENANTS = 500  # looked at in one claim


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that this courier tries now. `attempts` counts this try and fences its verdict.

    `url` is None when its endpoint is gone or switched off: then there is nobody to tell. `secrets` holds one, or two
    while the endpoint changes from one to the other, or none when they cannot be read: the key that they were encrypted
    with is missing.
    """

    id: str
    tenant_id: int
    tenant: str
    endpoint_id: str
    event: str
    payload: Json
    attempts: int
    age_seconds: float
    failing_seconds: float
    url: str | None = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


_TABLE = webhook_deliveries
_SECOND: ColumnElement[Any] = literal_column("interval '1 second'")
_FACTS = tuple(name for name in Claimed.__dataclass_fields__ if name != "secrets")
_PENDING = _TABLE.c.status == literal_column("'pending'")  # the words of ix_webhook_deliveries_due
_ENDPOINT_ID = bindparam("b_endpoint_id", type_=_TABLE.c.endpoint_id.type)
_LIMIT = bindparam("b_limit", type_=Integer)


def _claim() -> Select[Any]:
    waiting = tenants_with(_TABLE, lambda table: table.c.status == literal_column("'pending'"))
    turn = select(waiting.c.id).where(waiting.c.id.is_not(None)).limit(literal_column(str(MAX_TENANTS))).cte("turn")
    oldest = (
        select(_TABLE.c.id)
        .where(
            _PENDING,
            _TABLE.c.tenant_id == turn.c.id,
            _TABLE.c.not_before <= func.now(),
            _TABLE.c.endpoint_id != func.all(bindparam("b_slow", type_=ARRAY(_TABLE.c.endpoint_id.type))),
        )
        .order_by(_TABLE.c.not_before, _TABLE.c.id)
        .limit(bindparam("b_each", type_=Integer))
        .with_for_update(skip_locked=True)
        .lateral("oldest")
    )
    busy = bindparam("b_busy", type_=ARRAY(BigInteger))
    picked = (
        select(oldest.c.id)
        .select_from(turn)
        .join(oldest, true())
        .where(turn.c.id != func.all(busy))
        .limit(_LIMIT)
        .cte("picked")
    )
    claimed = (
        update(_TABLE)
        .where(_TABLE.c.id == picked.c.id)
        .values(
            attempts=_TABLE.c.attempts + literal_column("1"),
            not_before=func.now() + bindparam("b_claim_seconds", type_=Double) * _SECOND,
        )
        .returning(_TABLE)
        .cte("claimed")
    )
    endpoint = webhook_endpoints
    return (
        select(
            claimed.c.id,
            claimed.c.tenant_id,
            tenants.c.name,
            claimed.c.endpoint_id,
            claimed.c.event,
            claimed.c.payload,
            claimed.c.attempts,
            _seconds_since(claimed.c.created_at),
            func.coalesce(_seconds_since(endpoint.c.failing_since), literal_column("0.0", Double)),
            case((endpoint.c.enabled, endpoint.c.url)),
            endpoint.c.secret,
            case((endpoint.c.old_secret_until > func.now(), endpoint.c.old_secret)),
        )
        .select_from(claimed)
        .join(tenants, tenants.c.id == claimed.c.tenant_id)
        .outerjoin(endpoint, endpoint.c.id == claimed.c.endpoint_id)
    )


def _seconds_since(moment: Any) -> Any:  # noqa: ANN401 - a column
    return cast(extract("epoch", func.now() - moment), Double)


def _settle() -> Select[Any]:
    status = bindparam("b_status", type_=Text)
    again = status.op("=")(literal_column("'pending'"))
    settled = (
        update(_TABLE)
        .where(
            _TABLE.c.id == bindparam("b_delivery_id", type_=_TABLE.c.id.type),
            _TABLE.c.attempts == bindparam("b_attempts", type_=Integer),
            _PENDING,
        )
        .values(
            status=status,
            not_before=case(
                (again, func.now() + bindparam("b_delay_seconds", type_=Double) * _SECOND), else_=_TABLE.c.not_before
            ),
            last_error=bindparam("b_error", type_=Text),
            last_status=bindparam("b_http_status", type_=Integer),
            ended_at=case((again, None), else_=func.now()),
        )
        .returning(_TABLE.c.endpoint_id, _TABLE.c.status)
        .cte("settled")
    )
    return select(settled.c.endpoint_id)


def _stand() -> Any:  # noqa: ANN401 - an update
    endpoint, reason = webhook_endpoints, bindparam("b_disable", type_=Text)
    fine = bindparam("b_error", type_=Text).is_(None)
    return (
        update(endpoint)
        .where(
            endpoint.c.id == _ENDPOINT_ID,
            or_(~fine, endpoint.c.failing_since.is_not(None)),  # nothing is written while all is well
        )
        .values(
            failing_since=case((fine, None), else_=func.coalesce(endpoint.c.failing_since, func.now())),
            enabled=case((reason.is_not(None), literal_column("false")), else_=endpoint.c.enabled),
            disabled_reason=func.coalesce(reason, endpoint.c.disabled_reason),
        )
    )


_CLAIM = _claim()
_SETTLE = _settle()
_STAND = _stand()
_DROP_WAITING = (
    update(_TABLE)
    .where(_TABLE.c.endpoint_id == _ENDPOINT_ID, _PENDING)
    .values(
        status=literal_column("'dropped'"),
        last_error=func.coalesce(_TABLE.c.last_error, literal_column("'endpoint_disabled'")),
        ended_at=func.now(),
    )
)


async def claim(  # noqa: PLR0913 - how much, from whom
    conn: AsyncConnection,
    *,
    limit: int,
    each: int,
    claim_seconds: float,
    busy: Collection[int] = (),
    slow: Collection[str] = (),
    after_tenant_id: int = 0,
) -> list[Claimed]:
    """Takes up to `limit` due deliveries, at most `each` of a tenant, behind a tenant.

    None for `busy` tenants, and none for `slow` endpoints.

    They are due again after `claim_seconds`, should this courier die. Safe with several couriers at once.
    """
    values = {
        "b_limit": limit,
        "b_each": each,
        "b_claim_seconds": claim_seconds,
        "b_busy": list(busy),
        "b_slow": list(slow),
        "b_after_tenant_id": after_tenant_id,
    }
    return [_claimed(*row) for row in await conn.execute(_CLAIM, values)]


async def settle(conn: AsyncConnection, claimed: Claimed, verdict: Verdict) -> bool:
    """Writes what an attempt came to; False when it was claimed again meanwhile, and then nothing is written.

    Call it in a transaction: the delivery, its endpoint's standing and, when that is switched off, what waits for it.
    """
    values = {
        "b_delivery_id": claimed.id,
        "b_attempts": claimed.attempts,
        "b_status": verdict.status,
        "b_delay_seconds": verdict.delay_seconds,
        "b_error": verdict.error,
        "b_http_status": verdict.http_status,
    }
    if (await conn.execute(_SETTLE, values)).first() is None:
        return False
    place = {"b_endpoint_id": claimed.endpoint_id}
    if verdict.status != "dropped":
        await conn.execute(_STAND, {**place, "b_error": verdict.error, "b_disable": verdict.disable})
    if verdict.disable is not None:
        await conn.execute(_DROP_WAITING, place)
    return True


def _claimed(*row: Any) -> Claimed:  # noqa: ANN401 - the columns of a claim
    *facts, secret, old_secret = row
    stored = [one for one in (secret, old_secret) if one is not None]
    known = dict(zip(_FACTS, facts, strict=True))
    try:
        secrets = tuple(bodies.unpack(one).decode() for one in stored)
    except errors.Internal:  # one endpoint's secret must not keep everybody's news
        secrets = ()
    return Claimed(**known, secrets=secrets)
