"""Results: what a compaction gave comes back as it was."""

from __future__ import annotations

from decimal import Decimal

import pytest

from compaction.core.messages import Message, Usage
from compaction.core.results import Dropped
from compaction.store import results
from compaction.store.jobs import Finish
from tests.integration.store.stage import Stage, compacted

pytestmark = pytest.mark.anyio

HALF = "half a pair \ud83d and a NUL \0"


async def test_a_result_comes_back_as_it_was_made(stage: Stage) -> None:
    claim = await stage.running(await stage.session(messages=4))
    made = compacted(
        claim,
        summary=(Message(role="user", content=HALF, uuid="s", is_compact_summary=True),),
        kept=(Message(role="assistant", content=[{"type": "from_the_future", "x": [1, {"y": None}]}], uuid="k"),),
        attachments=(Message(role="user", content="a file", is_meta=True),),
        hook_messages=(Message(role="user", content="from a hook"),),
        usage=Usage(1, 2, 3, 4),
        cost_usd=Decimal("0.012345"),
        ptl_attempts=2,
        dropped=Dropped(1, 5, 900),
        context_management={"edits": [{"type": "clear"}]},
        degraded=True,
        hook_results=({"name": "lint", "ok": True},),
    )
    await stage.finish(claim, Finish(status="succeeded", was_compacted=True, result=results.encode_result(made)))
    async with stage.database.connect() as conn:
        stored = await results.get(conn, stage.tenant_id, claim.job.id)
    assert stored is not None
    assert stored.body.messages == made.messages
    assert stored.body.kept == made.kept
    assert (stored.job_id, stored.session_id, stored.session_name) == (
        made.job_id,
        claim.session.id,
        claim.session.name,
    )
    assert (stored.strategy, stored.model, stored.usage, stored.cost_usd) == (
        "fresh",
        made.model,
        made.usage,
        made.cost_usd,
    )
    assert (stored.pre_tokens, stored.post_tokens, stored.ptl_attempts) == (1000, 100, 2)
    assert (stored.dropped, stored.context_management) == (made.dropped, made.context_management)
    assert (stored.covers_through_seq, stored.prefix_hash, stored.degraded) == (4, made.prefix_hash, True)
    assert stored.hook_results == [{"name": "lint", "ok": True}]
    assert stored.applied_at is None
    assert stored.created_at == (await stage.job(claim.job.id)).ended_at


async def test_the_live_view_holds_the_same_messages(stage: Stage) -> None:
    claim = await stage.running(await stage.session(messages=4))
    made = compacted(claim, HALF)
    await stage.finish(claim, Finish(status="succeeded", was_compacted=True, result=results.encode_result(made)))
    view = await stage.live(claim.session)
    assert view.result_body is not None
    assert view.result_body.messages == made.messages


async def test_an_unknown_price_stays_unknown(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    made = compacted(claim, cost_usd=None, model=None, context_management=None)
    await stage.finish(claim, Finish(status="succeeded", was_compacted=True, result=results.encode_result(made)))
    async with stage.database.connect() as conn:
        stored = await results.get(conn, stage.tenant_id, claim.job.id)
    assert stored is not None
    assert (stored.cost_usd, stored.model, stored.context_management) == (None, None, None)


async def test_a_result_is_seen_by_its_tenant_alone_and_not_before_it_is_there(stage: Stage) -> None:
    claim = await stage.running(await stage.session())
    async with stage.database.connect() as conn:
        assert await results.get(conn, stage.tenant_id, claim.job.id) is None
        assert await results.get(conn, stage.tenant_id, "not-a-job") is None
    await stage.finish(
        claim, Finish(status="succeeded", was_compacted=True, result=results.encode_result(compacted(claim)))
    )
    async with stage.database.connect() as conn:
        assert await results.get(conn, stage.tenant_id + 1_000_000, claim.job.id) is None
        assert await results.get(conn, stage.tenant_id, claim.job.id) is not None
