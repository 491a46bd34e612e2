"""The audit log: what people did by the dashboard. Written before the deed, closed after it, never changed again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BigInteger, Integer, Text, bindparam, cast, exists, func, insert, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core.jsonbytes import Json
from compaction.store import cursors, plain
from compaction.store.operator_tables import audit_entries
from compaction.store.reach import Reach
from compaction.store.tenants import Principal

EVERYBODY = 0  # the owner of what was done to several tenants' things; identities begin with 1
MAX_TARGET_CHARS = 1_000  # a filter in words: nine fields, two of them names of 200


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One deed. `done` is how many things it changed, None while it is under way or when it broke off."""

    id: int
    at: datetime
    actor_tenant: str
    actor_key: str
    action: str
    target: str
    details: dict[str, Json]
    done: int | None
    ended_at: datetime | None


_BEGIN = (
    insert(audit_entries)
    .values(
        tenant_id=bindparam("b_tenant_id", type_=BigInteger),
        actor_tenant=bindparam("b_actor_tenant", type_=Text),
        actor_key=bindparam("b_actor_key", type_=Text),
        action=bindparam("b_action", type_=Text),
        target=bindparam("b_target", type_=Text),
        details=cast(bindparam("b_details", type_=Text), JSONB),
    )
    .returning(audit_entries.c.id)
)
_END = (
    update(audit_entries)
    .where(audit_entries.c.id == bindparam("b_id", type_=BigInteger), audit_entries.c.ended_at.is_(None))
    .values(
        done=bindparam("b_done", type_=Integer),
        details=audit_entries.c.details.op("||")(cast(bindparam("b_details", type_=Text), JSONB)),
        ended_at=func.now(),
    )
)


async def begin(  # noqa: PLR0913 - who did what to what
    conn: AsyncConnection,
    actor: Principal,
    action: str,
    target: str = "",
    *,
    tenant_id: int | None,
    details: Mapping[str, Json] | None = None,
) -> int:
    """Writes down what is about to be done to `tenant_id`'s things (None: to several tenants'); the entry's id."""
    written = await conn.execute(
        _BEGIN,
        {
            "b_tenant_id": EVERYBODY if tenant_id is None else tenant_id,
            "b_actor_tenant": actor.tenant,
            "b_actor_key": actor.public_id,
            "b_action": action,
            "b_target": target.replace("\0", " ")[:MAX_TARGET_CHARS],  # Postgres carries no NUL
            "b_details": plain.mended_json_text(dict(details or {})),
        },
    )
    entry_id: int = written.scalar_one()
    return entry_id


async def end(conn: AsyncConnection, entry_id: int, done: int, details: Mapping[str, Json] | None = None) -> None:
    """Writes down how many things the deed changed."""
    values = {"b_id": entry_id, "b_done": done, "b_details": plain.mended_json_text(dict(details or {}))}
    await conn.execute(_END, values)


async def is_noted(  # noqa: PLR0913 - as `begin`
    conn: AsyncConnection, actor: Principal, action: str, target: str, *, tenant_id: int, visit: str
) -> bool:
    """Whether this deed of this visit (`details.visit`) has its entry already."""
    columns = audit_entries.c
    entry = select(
        exists().where(
            columns.tenant_id == bindparam("b_tenant_id", type_=BigInteger),
            columns.target == bindparam("b_target", type_=Text),
            columns.action == bindparam("b_action", type_=Text),
            columns.actor_key == bindparam("b_actor_key", type_=Text),
            columns.details["visit"].astext == bindparam("b_visit", type_=Text),
        )
    )
    values = {
        "b_tenant_id": tenant_id,
        "b_target": target[:MAX_TARGET_CHARS],
        "b_action": action,
        "b_actor_key": actor.public_id,
        "b_visit": visit,
    }
    return bool((await conn.execute(entry, values)).scalar_one())


async def list_entries(
    conn: AsyncConnection, reach: Reach, *, target: str | None = None, limit: int = 50, cursor: str | None = None
) -> tuple[list[AuditEntry], str | None]:
    """A page of the log, newest first, and the cursor of the next page if there is one; `target` narrows it.

    Raises errors.InvalidRequest for a made-up cursor.
    """
    columns = [audit_entries.c[name] for name in AuditEntry.__dataclass_fields__]
    page = select(*columns).where(*reach.wall(audit_entries.c.tenant_id))
    values = reach.values | {"b_limit": limit + 1}
    before = cursors.decode_number(cursor)
    if before is not None:
        page = page.where(audit_entries.c.id < bindparam("b_before_id", type_=BigInteger))
        values["b_before_id"] = before
    if target is not None:
        page = page.where(audit_entries.c.target == bindparam("b_target", type_=Text))
        values["b_target"] = target
    newest = page.order_by(audit_entries.c.id.desc()).limit(bindparam("b_limit", type_=Integer))
    listed = [AuditEntry(*row) for row in await conn.execute(newest, values)]
    kept = listed[:limit]
    return kept, cursors.encode_number(kept[-1].id) if len(listed) > limit else None
