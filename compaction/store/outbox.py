"""The outbox: whoever ends a job writes, in the same statement, a delivery for each endpoint that wants to hear of it.

So the news cannot be lost between the commit and the call, and there is none of what was rolled back. `news` is the one
place that writes them; each statement that ends jobs takes it as a part (`finishing`, `job_ends`).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import CTE, BigInteger, ColumnElement, Insert, Text, and_, bindparam, case, func, insert, select
from sqlalchemy import literal_column as word
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.webhooks import PING
from compaction.store.session_rows import PRODUCERS_NAME
from compaction.store.tables import jobs, sessions, webhook_deliveries, webhook_endpoints

# What a statement that ends jobs must return of them.
ENDED = (
    jobs.c.id,
    jobs.c.tenant_id,
    jobs.c.session_id,
    jobs.c.status,
    jobs.c.trigger,
    jobs.c.was_compacted,
    jobs.c.reason,
    jobs.c.error,
    jobs.c.ended_at,
)
_COLUMNS = ["tenant_id", "endpoint_id", "job_id", "event", "payload"]


def news(ended: CTE) -> Insert:
    """Part of a statement that ends jobs: deliveries for those of `ended` (columns of ENDED) that have ended."""
    event = _event(ended)
    told = (
        select(ended.c.tenant_id, webhook_endpoints.c.id, ended.c.id, event, _payload(ended, event))
        .select_from(ended)
        .join(
            webhook_endpoints,
            and_(
                webhook_endpoints.c.tenant_id == ended.c.tenant_id,
                webhook_endpoints.c.enabled,
                event == func.any(webhook_endpoints.c.events),
            ),
        )
        .join(sessions, sessions.c.id == ended.c.session_id)
        .where(ended.c.ended_at.is_not(None))
    )
    return insert(webhook_deliveries).from_select(_COLUMNS, told)


def _event(ended: CTE) -> ColumnElement[Any]:
    skipped = and_(ended.c.status == word("'succeeded'"), ended.c.was_compacted.is_(False))
    return case((skipped, word("'compaction.skipped'", Text)), else_=word("'compaction.'", Text).concat(ended.c.status))


def _payload(ended: CTE, event: ColumnElement[Any]) -> ColumnElement[Any]:
    """Ids, status and code: nothing of what was said in the session."""
    data = _object(
        job_id=ended.c.id,
        session_id=PRODUCERS_NAME,
        status=ended.c.status,
        trigger=ended.c.trigger,
        was_compacted=ended.c.was_compacted,
        reason=ended.c.reason,
        error_code=ended.c.error.op("->>")(word("'code'")),
    )
    return _object(type=event, timestamp=ended.c.ended_at, data=data)


def _object(**members: ColumnElement[Any]) -> ColumnElement[Any]:
    pairs = [part for name, value in members.items() for part in (word(f"'{name}'"), value)]
    return func.jsonb_build_object(*pairs)


_PING = (
    insert(webhook_deliveries)
    .from_select(
        ["tenant_id", "endpoint_id", "event", "payload"],
        select(
            webhook_endpoints.c.tenant_id,
            webhook_endpoints.c.id,
            word(f"'{PING}'", Text),
            _object(
                type=word(f"'{PING}'", Text), timestamp=func.now(), data=_object(webhook_id=webhook_endpoints.c.id)
            ),
        ).where(
            webhook_endpoints.c.id == bindparam("b_endpoint_id", type_=webhook_endpoints.c.id.type),
            webhook_endpoints.c.tenant_id == bindparam("b_tenant_id", type_=BigInteger),
        ),
    )
    .returning(webhook_deliveries.c.id)
)


async def ping(conn: AsyncConnection, tenant_id: int, endpoint_id: str) -> str | None:
    """Writes a delivery that only asks whether the tenant's endpoint hears us: its id, or None."""
    values = {"b_endpoint_id": endpoint_id, "b_tenant_id": tenant_id}
    made: str | None = (await conn.execute(_PING, values)).scalar_one_or_none()
    return made
