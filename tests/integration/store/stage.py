"""A stage for store tests: a tenant of its own in a real database, and words for what tests do again and again."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from compaction.core.boundary import Boundary
from compaction.core.jobs import Scope, Trigger
from compaction.core.messages import Message, Usage
from compaction.core.results import CompactionResult, Dropped
from compaction.store import jobs, results, sessions, tenants
from compaction.store.engine import Database
from compaction.store.jobs import Claim, Enqueued, Finish, JobRow, NewJob
from compaction.store.sessions import NewMessage, SessionRow


def message(text: str, *, uuid: str | None = None, role: str = "user", **envelope: bool) -> NewMessage:
    """A message of the wire with this text; partial and starts_live are told to the store as a caller would."""
    body = {"role": role, "content": text} | ({} if uuid is None else {"uuid": uuid})
    return NewMessage(json.dumps(body).encode(), uuid, role, **envelope)


def texts(stored: Sequence[sessions.StoredMessage]) -> list[str]:
    """The contents of stored messages."""
    return [json.loads(one.body)["content"] for one in stored]


def compacted(claim: Claim, text: str = "summary", **changes: Any) -> CompactionResult:  # noqa: ANN401 - any field
    """A finished compaction of the claimed job."""
    facts: dict[str, Any] = {
        "job_id": claim.job.id,
        "strategy": "fresh",
        "boundary": Boundary(
            uuid=str(uuid.uuid4()),
            trigger=claim.job.trigger,
            strategy="fresh",
            pre_tokens=1000,
            covers_through_seq=claim.covers_through_seq,
            job_id=claim.job.id,
        ),
        "summary": (Message(role="user", content=text, is_compact_summary=True),),
        "pre_tokens": 1000,
        "post_tokens": 100,
        "usage": Usage(900, 100),
        "model": "claude-sonnet-5",
        "dropped": Dropped(1, 2, 3),
        "covers_through_seq": claim.covers_through_seq,
        "prefix_hash": "ab" * 32,
    }
    return CompactionResult(**(facts | changes))


def success(claim: Claim, text: str = "summary", **changes: Any) -> Finish:  # noqa: ANN401 - any field
    """The decision that ends a job well."""
    return Finish(
        status="succeeded", was_compacted=True, result=results.encode_result(compacted(claim, text)), **changes
    )


@dataclass(frozen=True)
class Stage:
    """The words; each one is a transaction of its own."""

    database: Database
    tenant_id: int
    tenant: str

    async def session(self, messages: int = 0) -> SessionRow:
        """A new session with so many messages, "m1" to "mN"."""
        name = f"session-{uuid.uuid4()}"
        async with self.database.begin() as conn:
            made = await sessions.put(conn, self.tenant_id, name, model="claude-sonnet-5")
            if messages:
                batch = [message(f"m{place}", uuid=f"u{place}") for place in range(1, messages + 1)]
                await sessions.append(conn, made.id, batch)
            found = await sessions.get(conn, self.tenant_id, name)
        assert found is not None
        return found

    async def append(self, session: SessionRow, *batch: NewMessage, expected_seq: int | None = None) -> Any:  # noqa: ANN401 - any value
        """Appends to the session."""
        async with self.database.begin() as conn:
            return await sessions.append(conn, session.id, batch, expected_seq=expected_seq)

    async def reread(self, session: SessionRow) -> SessionRow:
        """The session as it is now."""
        async with self.database.connect() as conn:
            found = await sessions.get(conn, self.tenant_id, session.name)
        assert found is not None
        return found

    async def live(self, session: SessionRow, through_seq: int | None = None) -> sessions.LiveView:
        """The live view."""
        async with self.database.connect() as conn:
            return await sessions.load_live(conn, session.id, through_seq=through_seq)

    def order(
        self,
        session: SessionRow,
        trigger: Trigger = "auto",
        *,
        scope: Scope | None = None,
        not_before: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        **fields: Any,  # noqa: ANN401 - any field of a job
    ) -> NewJob:
        """What a producer asks for."""
        return NewJob(
            tenant_id=self.tenant_id,
            session_id=session.id,
            trigger=trigger,
            scope=scope or Scope(),
            not_before=not_before,
            metadata=metadata or {},
            **fields,
        )

    async def enqueue(self, session: SessionRow, trigger: Trigger = "auto", **fields: Any) -> Enqueued:  # noqa: ANN401 - any value
        """Enqueues a job."""
        async with self.database.begin() as conn:
            return await jobs.enqueue(conn, self.order(session, trigger, **fields))

    async def try_claim(self, job_id: str, owner: str = "worker-1", lease_seconds: float = 60.0) -> Claim | None:
        """Claims a job if it can be."""
        async with self.database.connect() as conn:
            return await jobs.claim(conn, job_id, owner, lease_seconds)

    async def claim(self, job_id: str, owner: str = "worker-1", lease_seconds: float = 60.0) -> Claim:
        """Claims a job that is ready."""
        claimed = await self.try_claim(job_id, owner, lease_seconds)
        assert claimed is not None
        return claimed

    async def running(self, session: SessionRow, trigger: Trigger = "auto", **fields: Any) -> Claim:  # noqa: ANN401 - any value
        """Enqueues a job and claims it."""
        return await self.claim((await self.enqueue(session, trigger, **fields)).job.id)

    async def finish(self, claim: Claim, decision: Finish) -> bool:
        """Ends a job's attempt."""
        async with self.database.begin() as conn:
            return await jobs.finish(conn, claim.job.id, claim.token, decision) is not None

    async def retrying(self, session: SessionRow, delay_seconds: float = 0.0) -> JobRow:
        """A job whose first attempt failed and that waits for its next."""
        claim = await self.running(session)
        assert await self.finish(claim, Finish(status="retrying", delay_seconds=delay_seconds))
        return await self.job(claim.job.id)

    async def job(self, job_id: str) -> JobRow:
        """The job as it is now."""
        async with self.database.connect() as conn:
            found = await jobs.get(conn, self.tenant_id, job_id)
        assert found is not None
        return found

    async def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - any value
        """Rows of plain SQL with %s places, to look behind the store's back."""
        async with self.database.connect() as conn:
            return [tuple(row) for row in await conn.exec_driver_sql(sql, values)]

    async def change(self, sql: str, *values: Any) -> None:  # noqa: ANN401 - any value
        """A change by plain SQL, to make happen what takes time."""
        async with self.database.connect() as conn:
            await conn.exec_driver_sql(sql, values)

    async def expire(self, claim: Claim) -> None:
        """Lets the job's lease run out."""
        await self.change("UPDATE jobs SET lease_expires_at = now() - interval '1 second' WHERE id = %s", claim.job.id)


async def staged(database: Database) -> Stage:
    """A stage with a new tenant."""
    name = f"tenant-{uuid.uuid4()}"
    async with database.begin() as conn:
        tenant_id = await tenants.ensure_tenant(conn, name)
    return Stage(database, tenant_id, name)
