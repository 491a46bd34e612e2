"""Plays the worker: takes a job to its end through the store, without a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fastapi import FastAPI

from api.live import live_messages
from compaction.core import wire
from compaction.core.boundary import Boundary
from compaction.core.breaker import BreakerChange
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, Usage
from compaction.core.results import CompactionResult
from compaction.store import jobs, sessions
from compaction.store.engine import Database
from compaction.store.jobs import Claim, Finish
from compaction.store.results import encode_result

OWNER = "test-worker"
LEASE_SECONDS = 60


def database_of(app: FastAPI) -> Database:
    database = app.state.services.database
    assert isinstance(database, Database)
    return database


async def claimed(app: FastAPI, job_id: str) -> Claim:
    async with database_of(app).begin() as conn:
        claim = await jobs.claim(conn, job_id, OWNER, LEASE_SECONDS)
    assert claim is not None
    return claim


async def finish(app: FastAPI, claim: Claim, end: Finish) -> None:
    async with database_of(app).begin() as conn:
        assert await jobs.finish(conn, claim.job.id, claim.token, end)


async def succeed(app: FastAPI, job_id: str) -> None:
    claim = await claimed(app, job_id)
    async with database_of(app).connect() as conn:
        view = await sessions.load_live(conn, claim.session.id, through_seq=claim.covers_through_seq)
    prefix_hash = wire.prefix_hash(live_messages(view))
    result = encode_result(replace(a_result(job_id, claim.covers_through_seq), prefix_hash=prefix_hash))
    events = [("tengu_compact", {"pre_tokens": 1_000, "post_tokens": 100})]
    await finish(app, claim, Finish(status="succeeded", was_compacted=True, result=result, events=events))


async def skip(app: FastAPI, job_id: str, reason: str = "nothing_to_compact") -> None:
    await finish(app, await claimed(app, job_id), Finish(status="succeeded", was_compacted=False, reason=reason))


async def fail(app: FastAPI, job_id: str, code: str = "no_summary") -> None:
    error: Mapping[str, Json] = {"code": code, "message": "It did not work.", "retryable": False}
    change = BreakerChange("failure", code)
    await finish(app, await claimed(app, job_id), Finish(status="failed", error=error, breaker=change))


def a_result(job_id: str, covers_through_seq: int) -> CompactionResult:
    """A summary, one kept message and one attachment."""
    boundary = Boundary(
        uuid="b-1",
        trigger="manual",
        strategy="fresh",
        pre_tokens=1_000,
        covers_through_seq=covers_through_seq,
        job_id=job_id,
    )
    return CompactionResult(
        job_id=job_id,
        strategy="fresh",
        boundary=boundary,
        summary=(Message(role="user", content="Summary: so far so good.", uuid="s-1", is_compact_summary=True),),
        kept=(Message(role="assistant", content=[{"type": "text", "text": "Going on."}], uuid="k-1"),),
        attachments=(Message(role="user", content="The file again.", uuid="a-1", is_meta=True),),
        pre_tokens=1_000,
        post_tokens=100,
        usage=Usage(input_tokens=900, output_tokens=80),
        covers_through_seq=covers_through_seq,
        prefix_hash="ab" * 32,
    )
