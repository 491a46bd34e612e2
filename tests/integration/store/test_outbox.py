"""The outbox: every way in which a job can end writes its news in the same statement, and nothing else does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from compaction.core.webhooks import EVENTS, Event
from compaction.store import jobs, outbox, webhooks
from compaction.store.jobs import Finish
from compaction.store.webhooks import EndpointRow
from tests.integration.store.stage import Stage, staged, success

pytestmark = pytest.mark.anyio

SECRET = "whsec_" + "A" * 43 + "="
ERROR = {"code": "no_summary", "message": "No words of a session.", "retryable": False}
End = Callable[[Stage], Awaitable[tuple[str, str]]]  # plays an end: the job's id and its session's name


async def endpoint(stage: Stage, *events: Event) -> EndpointRow:
    async with stage.database.begin() as conn:
        return await webhooks.add(
            conn, stage.tenant_id, url="https://x.example.com/", events=events or EVENTS, secret=SECRET
        )


async def outgoing(stage: Stage) -> list[dict[str, Any]]:
    rows = await stage.query(
        "SELECT endpoint_id::text, job_id::text, event, payload, status FROM webhook_deliveries "
        "WHERE tenant_id = %s ORDER BY id",
        stage.tenant_id,
    )
    return [dict(zip(("endpoint", "job", "event", "payload", "status"), row, strict=True)) for row in rows]


async def succeeded(stage: Stage) -> tuple[str, str]:
    session = await stage.session(3)
    claim = await stage.running(session)
    assert await stage.finish(claim, success(claim, "the summary that nobody is told"))
    return claim.job.id, session.name


async def skipped(stage: Stage) -> tuple[str, str]:
    session = await stage.session(3)
    claim = await stage.running(session)
    assert await stage.finish(claim, Finish(status="succeeded", was_compacted=False, reason="below_threshold"))
    return claim.job.id, session.name


async def failed(stage: Stage) -> tuple[str, str]:
    session = await stage.session(3)
    claim = await stage.running(session)
    assert await stage.finish(claim, Finish(status="failed", error=ERROR))
    return claim.job.id, session.name


async def cancelled_while_it_waits(stage: Stage) -> tuple[str, str]:
    session = await stage.session(3)
    job = (await stage.enqueue(session)).job
    async with stage.database.connect() as conn:
        await jobs.cancel(conn, stage.tenant_id, job.id)
    return job.id, session.name


async def cancelled_by_its_worker(stage: Stage) -> tuple[str, str]:
    session = await stage.session(3)
    claim = await stage.running(session)
    async with stage.database.connect() as conn:
        await jobs.cancel(conn, stage.tenant_id, claim.job.id)
    assert await stage.finish(claim, Finish(status="retrying", delay_seconds=60))
    return claim.job.id, session.name


async def lost_too_often(stage: Stage) -> tuple[str, str]:
    session = await stage.session(3)
    claim = await stage.running(session)
    await stage.change("UPDATE jobs SET crashes = 100 WHERE id = %s", claim.job.id)
    await stage.expire(claim)
    async with stage.database.begin() as conn:
        await jobs.reap_expired(conn, 100)
    return claim.job.id, session.name


async def overdue(stage: Stage) -> tuple[str, str]:
    session = await stage.session(3)
    job = (await stage.enqueue(session)).job
    await stage.change("UPDATE jobs SET deadline_at = now() - interval '1 second' WHERE id = %s", job.id)
    async with stage.database.begin() as conn:
        await jobs.reap_expired(conn, 100)
    return job.id, session.name


ENDS: list[tuple[End, Event, dict[str, Any]]] = [
    (succeeded, "compaction.succeeded", {"status": "succeeded", "was_compacted": True}),
    (skipped, "compaction.skipped", {"status": "succeeded", "was_compacted": False, "reason": "below_threshold"}),
    (failed, "compaction.failed", {"status": "failed", "error_code": "no_summary"}),
    (cancelled_while_it_waits, "compaction.cancelled", {"status": "cancelled", "error_code": "cancelled"}),
    (cancelled_by_its_worker, "compaction.cancelled", {"status": "cancelled", "error_code": "cancelled"}),
    (lost_too_often, "compaction.failed", {"status": "failed", "error_code": "worker_lost"}),
    (overdue, "compaction.failed", {"status": "failed", "error_code": "timeout"}),
]


@pytest.mark.parametrize(("play", "event", "facts"), ENDS, ids=[end[0].__name__ for end in ENDS])
async def test_each_way_to_end_is_news_with_ids_status_and_code(
    stage: Stage, play: End, event: Event, facts: dict[str, Any]
) -> None:
    listening = await endpoint(stage)
    job_id, session_name = await play(stage)
    (news,) = await outgoing(stage)
    payload = news.pop("payload")
    assert news == {"endpoint": listening.id, "job": job_id, "event": event, "status": "pending"}
    assert (set(payload), payload["type"]) == ({"type", "timestamp", "data"}, event)
    nothing = {"was_compacted": None, "reason": None, "error_code": None}
    assert payload["data"] == nothing | {"job_id": job_id, "session_id": session_name, "trigger": "auto"} | facts


async def test_nothing_of_the_session_is_in_the_news(stage: Stage) -> None:
    await endpoint(stage)
    await succeeded(stage)
    await failed(stage)
    text = str(await outgoing(stage))
    assert "nobody is told" not in text
    assert "No words of a session" not in text


async def test_a_job_that_goes_on_is_no_news(stage: Stage) -> None:
    await endpoint(stage)
    session = await stage.session(3)
    await stage.retrying(session, delay_seconds=60)
    claim = await stage.running(await stage.session(3))
    await stage.expire(claim)
    async with stage.database.begin() as conn:
        await jobs.reap_expired(conn, 100)
    assert await outgoing(stage) == []


async def test_a_stale_end_is_no_news(stage: Stage) -> None:
    await endpoint(stage)
    claim = await stage.running(await stage.session(3))
    await stage.change("UPDATE jobs SET lease_token = lease_token + 1000000 WHERE id = %s", claim.job.id)
    assert not await stage.finish(claim, success(claim))
    assert await outgoing(stage) == []


async def test_what_is_rolled_back_is_no_news(stage: Stage) -> None:
    await endpoint(stage)
    claim = await stage.running(await stage.session(3))

    async def finish_and_die() -> None:
        async with stage.database.begin() as conn:
            assert await jobs.finish(conn, claim.job.id, claim.token, success(claim))
            raise RuntimeError("the process dies")

    with pytest.raises(RuntimeError, match="the process dies"):
        await finish_and_die()
    assert await outgoing(stage) == []
    assert await stage.finish(claim, success(claim))
    assert [news["event"] for news in await outgoing(stage)] == ["compaction.succeeded"]


async def test_only_those_hear_who_want_to_and_are_switched_on_and_of_the_tenant(stage: Stage) -> None:
    everything, failures = await endpoint(stage), await endpoint(stage, "compaction.failed")
    switched_off = await endpoint(stage)
    async with stage.database.begin() as conn:
        await webhooks.change(conn, stage.tenant_id, switched_off.id, enabled=False)
    other = await staged(stage.database)
    await endpoint(other)
    await succeeded(stage)
    await failed(stage)
    heard = [(news["endpoint"], news["event"]) for news in await outgoing(stage)]
    assert sorted(heard) == sorted(
        [
            (everything.id, "compaction.succeeded"),
            (everything.id, "compaction.failed"),
            (failures.id, "compaction.failed"),
        ]
    )
    assert await outgoing(other) == []


async def test_a_ping_goes_to_the_tenants_own_endpoint_alone(stage: Stage) -> None:
    own = await endpoint(stage, "compaction.failed")
    other = await staged(stage.database)
    async with stage.database.begin() as conn:
        assert await outbox.ping(conn, other.tenant_id, own.id) is None
        assert await outbox.ping(conn, stage.tenant_id, own.id) is not None
    (news,) = await outgoing(stage)
    assert (news["event"], news["job"], news["payload"]["data"]) == ("webhook.ping", None, {"webhook_id": own.id})
