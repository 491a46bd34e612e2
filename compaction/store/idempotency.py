"""Idempotency keys: the first request with a key writes its answer beside its work, later ones get that answer again.

Both stand in the caller's one transaction: either the work and its answer are stored, or neither. A request that meets
another one of the same key at work is told so at once instead of waiting on its row.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction import errors
from compaction.store import bodies
from compaction.store.tables import idempotency_keys

_BY_KEY = (
    idempotency_keys.c.tenant_id == bindparam("b_tenant_id"),
    idempotency_keys.c.key == bindparam("b_key"),
)
_RECALL = select(idempotency_keys.c.request_hash, idempotency_keys.c.status, idempotency_keys.c.response).where(
    *_BY_KEY
)
_LOCK = select(func.pg_try_advisory_xact_lock(func.hashtextextended(bindparam("b_name"), 0)))


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer that was given: its HTTP status and its bytes."""

    status: int
    response: bytes


async def recall(conn: AsyncConnection, tenant_id: int, key: str, request_hash: bytes) -> Kept | None:
    """The answer that this key's first request got; None for the first request, which must `keep` its answer.

    Raises errors.Conflict while the first is at work, errors.IdempotencyMismatch when it asked for something else.
    """
    free = await conn.scalar(_LOCK, {"b_name": f"idempotency:{tenant_id}:{key}"})
    if not free:
        raise errors.Conflict("The first request with this Idempotency-Key is still at work. Try again in a moment.")
    row = (await conn.execute(_RECALL, {"b_tenant_id": tenant_id, "b_key": key})).one_or_none()
    if row is None:
        return None
    if row.request_hash != request_hash:
        raise errors.IdempotencyMismatch
    return Kept(row.status, bodies.unpack_object(row.response))


async def keep(conn: AsyncConnection, tenant_id: int, key: str, request_hash: bytes, kept: Kept) -> None:
    """Stores the first request's answer; call it in the transaction that does the work."""
    values = {"tenant_id": tenant_id, "key": key, "request_hash": request_hash}
    response = bodies.pack(kept.response)  # it quotes the request: a job tells its instructions
    await conn.execute(insert(idempotency_keys).values(**values, status=kept.status, response=response))
