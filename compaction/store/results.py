"""Results: the compacted conversations. `encode_result` makes the row of a finished compaction, `get` reads it back."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, Row, bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, Usage, envelope, message_from, usage_from
from compaction.core.prompts import PROMPT_VERSION
from compaction.core.results import CompactionResult, Dropped
from compaction.store import bodies, plain
from compaction.store.session_rows import PRODUCERS_NAME
from compaction.store.tables import jobs, results, sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultBody:
    """The messages of a result, part by part."""

    boundary: Message
    summary: tuple[Message, ...] = field(default=(), repr=False)
    kept: tuple[Message, ...] = field(default=(), repr=False)
    attachments: tuple[Message, ...] = field(default=(), repr=False)
    hook_messages: tuple[Message, ...] = field(default=(), repr=False)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The compacted conversation in its one order (DESIGN §3)."""
        return (self.boundary, *self.summary, *self.kept, *self.attachments, *self.hook_messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResult:
    """A result to store. `body` is packed; usage and dropped are plain numbers under their API names."""

    strategy: str
    model: str | None
    pre_tokens: int
    post_tokens: int
    usage: dict[str, int]
    cost_usd: Decimal | None
    ptl_attempts: int
    dropped: dict[str, int]
    context_management: Json
    covers_through_seq: int
    prefix_hash: str
    degraded: bool
    hook_results: list[dict[str, Json]]
    body: bytes = field(repr=False)
    prompt_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """A stored result. `session_id` is our row id, `session_name` the producer's id, None of an inline job's."""

    job_id: str
    session_id: int
    session_name: str | None
    lease_token: int
    strategy: str
    model: str | None
    pre_tokens: int
    post_tokens: int
    usage: Usage
    cost_usd: Decimal | None
    ptl_attempts: int
    dropped: Dropped
    context_management: Json
    covers_through_seq: int
    prefix_hash: str
    degraded: bool
    hook_results: list[dict[str, Json]]
    created_at: datetime
    applied_at: datetime | None
    applied_through_seq: int | None  # the newest message that the producer was given when it took the result over
    prompt_version: int | None  # None: made before it was kept
    body: ResultBody


_GET = (
    select(results, PRODUCERS_NAME.label("session_name"))
    .join(jobs, jobs.c.id == results.c.job_id)
    .join(sessions, sessions.c.id == results.c.session_id)
    .where(
        results.c.job_id == bindparam("b_job_id", type_=results.c.job_id.type),
        jobs.c.tenant_id == bindparam("b_tenant_id", type_=BigInteger),
    )
)


_APPLY = (
    update(results)
    .where(results.c.job_id == bindparam("b_job_id", type_=results.c.job_id.type))
    .values(
        applied_at=func.coalesce(results.c.applied_at, func.now()),
        applied_through_seq=bindparam("b_through_seq", type_=BigInteger),
    )
    .returning(results.c.applied_at)
)


def encode_result(result: CompactionResult) -> NewResult:
    """The row of a finished compaction."""
    dropped = result.dropped
    return NewResult(
        strategy=result.strategy,
        model=result.model,
        pre_tokens=result.pre_tokens,
        post_tokens=result.post_tokens,
        usage=result.usage.to_dict(),
        cost_usd=result.cost_usd,
        ptl_attempts=result.ptl_attempts,
        dropped={"rounds": dropped.rounds, "messages": dropped.messages, "tokens": dropped.tokens},
        context_management=result.context_management,
        covers_through_seq=result.covers_through_seq,
        prefix_hash=result.prefix_hash,
        degraded=result.degraded,
        hook_results=list(result.hook_results),
        prompt_version=PROMPT_VERSION,
        body=encode_body(
            ResultBody(
                boundary=result.boundary.message(),
                summary=result.summary,
                kept=result.kept,
                attachments=result.attachments,
                hook_messages=result.hook_messages,
            )
        ),
    )


def encode_body(body: ResultBody) -> bytes:
    """A result's messages as packed JSON, envelopes under the names of their parts."""
    parts = {
        "summary": body.summary,
        "kept": body.kept,
        "attachments": body.attachments,
        "hook_messages": body.hook_messages,
    }
    value = {"boundary": envelope(body.boundary)} | {name: list(map(envelope, part)) for name, part in parts.items()}
    return bodies.pack(jsonbytes.encode(value))


def decode_body(stored: bytes) -> ResultBody:
    """What `encode_body` was given; messages have no seq."""
    value = jsonbytes.decode(bodies.unpack(stored))
    return ResultBody(
        boundary=message_from(value["boundary"]),
        summary=tuple(map(message_from, value["summary"])),
        kept=tuple(map(message_from, value["kept"])),
        attachments=tuple(map(message_from, value["attachments"])),
        hook_messages=tuple(map(message_from, value["hook_messages"])),
    )


async def get(conn: AsyncConnection, tenant_id: int, job_id: str) -> ResultRow | None:
    """The result of the tenant's job; None while there is none (also when nothing was compacted)."""
    known = plain.job_id(job_id)
    if known is None:
        return None
    row = (await conn.execute(_GET, {"b_job_id": known, "b_tenant_id": tenant_id})).one_or_none()
    return None if row is None else _result(row)


async def mark_applied(conn: AsyncConnection, result: ResultRow, through_seq: int) -> datetime:
    """Records that the producer goes on with the result and the messages up to `through_seq`; when it first did."""
    values = {"b_job_id": result.job_id, "b_through_seq": through_seq}
    applied_at: datetime = (await conn.execute(_APPLY, values)).scalar_one()
    return applied_at


def _result(row: Row[Any]) -> ResultRow:
    fields = dict(row._mapping)  # noqa: SLF001 - the public name of a row's mapping
    fields["usage"] = usage_from(fields["usage"]) or Usage()
    fields["dropped"] = Dropped(**fields["dropped"])
    fields["body"] = decode_body(fields["body"])
    return ResultRow(**fields)
