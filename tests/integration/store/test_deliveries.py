"""Deliveries: claimed by one, due again when their courier dies, settled once, and read by their owner alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from compaction.core.webhooks import EVENTS, Verdict
from compaction.store import deliveries, delivery_log, outbox, webhooks
from compaction.store.deliveries import Claimed
from compaction.store.webhooks import EndpointRow
from tests.integration.store.stage import Stage, staged

pytestmark = pytest.mark.anyio

SECRET, NEXT = "whsec_" + "A" * 43 + "=", "whsec_" + "B" * 43 + "="
DELIVERED = Verdict("delivered", http_status=200)
FAILED_ONCE = Verdict("pending", 60.0, "http_status", 503)


@pytest.fixture
def store_url(database_url: str) -> str:
    """A database for each test: a claim takes what is due of all tenants."""
    return database_url


async def endpoint(stage: Stage) -> EndpointRow:
    async with stage.database.begin() as conn:
        return await webhooks.add(conn, stage.tenant_id, url="https://x.example.com/", events=EVENTS, secret=SECRET)


async def waiting(stage: Stage, one: EndpointRow, count: int = 1) -> list[str]:
    made = []
    for _ in range(count):
        async with stage.database.begin() as conn:
            made.append(str(await outbox.ping(conn, stage.tenant_id, one.id)))
    return made


async def claimed(stage: Stage, *, limit: int = 100, each: int = 100, **how: Any) -> list[Claimed]:  # noqa: ANN401 - any argument
    async with stage.database.begin() as conn:
        return await deliveries.claim(conn, limit=limit, each=each, claim_seconds=60.0, **how)


async def settled(stage: Stage, one: Claimed, verdict: Verdict) -> bool:
    async with stage.database.begin() as conn:
        return await deliveries.settle(conn, one, verdict)


async def log(stage: Stage, one: EndpointRow) -> list[tuple[str, int, str | None, int | None]]:
    async with stage.database.connect() as conn:
        rows, _ = await delivery_log.list_deliveries(conn, stage.tenant_id, one.id)
    return [(row.status, row.attempts, row.last_error, row.last_status) for row in rows]


async def reread(stage: Stage, one: EndpointRow) -> EndpointRow:
    async with stage.database.connect() as conn:
        found = await webhooks.get(conn, stage.tenant_id, one.id)
    assert found is not None
    return found


async def let_time_pass(stage: Stage, seconds: int) -> None:
    await stage.change("UPDATE webhook_deliveries SET not_before = not_before - %s * interval '1 second'", seconds)


async def test_a_claim_has_all_that_a_try_needs(stage: Stage) -> None:
    one = await endpoint(stage)
    (made,) = await waiting(stage, one)
    (found,) = await claimed(stage)
    assert (found.id, found.tenant, found.event, found.attempts) == (made, stage.tenant, "webhook.ping", 1)
    assert (found.url, found.secrets, found.failing_seconds) == ("https://x.example.com/", (SECRET,), 0.0)
    assert found.payload["data"] == {"webhook_id": one.id}
    assert SECRET not in repr(found)


async def test_many_couriers_at_once_share_what_is_due(stage: Stage) -> None:
    one = await endpoint(stage)
    made = await waiting(stage, one, 30)
    found = await asyncio.gather(*(claimed(stage, limit=7) for _ in range(8)))
    assert sorted(claim.id for claims in found for claim in claims) == sorted(made)


async def test_a_dead_couriers_delivery_is_due_again(stage: Stage) -> None:
    one = await endpoint(stage)
    made = await waiting(stage, one)
    assert [claim.id for claim in await claimed(stage)] == made
    assert await claimed(stage) == []
    await let_time_pass(stage, 61)
    assert [(claim.id, claim.attempts) for claim in await claimed(stage)] == [(made[0], 2)]


async def test_a_late_verdict_of_an_earlier_try_is_not_written(stage: Stage) -> None:
    one = await endpoint(stage)
    await waiting(stage, one)
    (early,) = await claimed(stage)
    await let_time_pass(stage, 61)
    (late,) = await claimed(stage)
    assert not await settled(stage, early, DELIVERED)
    assert await settled(stage, late, FAILED_ONCE)
    assert await log(stage, one) == [("pending", 2, "http_status", 503)]


async def test_a_delivery_ends_once(stage: Stage) -> None:
    one = await endpoint(stage)
    await waiting(stage, one)
    (claim,) = await claimed(stage)
    assert await settled(stage, claim, DELIVERED)
    assert not await settled(stage, claim, FAILED_ONCE)
    await let_time_pass(stage, 10**6)
    assert await claimed(stage) == []
    assert await log(stage, one) == [("delivered", 1, None, 200)]


async def test_a_failed_try_waits_for_its_pause(stage: Stage) -> None:
    one = await endpoint(stage)
    await waiting(stage, one)
    (claim,) = await claimed(stage)
    await settled(stage, claim, FAILED_ONCE)
    await let_time_pass(stage, 58)
    assert await claimed(stage) == []
    await let_time_pass(stage, 3)
    assert [again.attempts for again in await claimed(stage)] == [2]


async def test_an_endpoint_fails_from_its_first_failure_until_its_next_success(stage: Stage) -> None:
    one = await endpoint(stage)
    await waiting(stage, one, 3)
    first, second, third = await claimed(stage)
    await settled(stage, first, FAILED_ONCE)
    since = (await reread(stage, one)).failing_since
    await settled(stage, second, FAILED_ONCE)
    assert since is not None
    assert (await reread(stage, one)).failing_since == since
    await settled(stage, third, DELIVERED)
    assert (await reread(stage, one)).failing_since is None


async def test_a_claim_knows_for_how_long_its_endpoint_has_failed(stage: Stage) -> None:
    one = await endpoint(stage)
    await waiting(stage, one)
    await stage.change("UPDATE webhook_endpoints SET failing_since = now() - interval '6 days' WHERE id = %s", one.id)
    (claim,) = await claimed(stage)
    assert claim.failing_seconds == pytest.approx(6 * 86_400, abs=60)


async def test_an_endpoint_that_is_switched_off_for_its_failures_gets_nothing_more(stage: Stage) -> None:
    one = await endpoint(stage)
    await waiting(stage, one, 2)
    (claim,) = await claimed(stage, limit=1)
    await settled(stage, claim, Verdict("failed", error="http_status", http_status=500, disable="failing"))
    found = await reread(stage, one)
    assert (found.enabled, found.disabled_reason) == (False, "failing")
    assert sorted(await log(stage, one)) == [
        ("dropped", 0, "endpoint_disabled", None),
        ("failed", 1, "http_status", 500),
    ]
    async with stage.database.begin() as conn:
        again = await webhooks.change(conn, stage.tenant_id, one.id, enabled=True)
    assert again is not None
    assert (again.enabled, again.disabled_reason, again.failing_since) == (True, None, None)


async def test_what_waits_for_an_endpoint_that_is_gone_has_nobody_to_go_to(stage: Stage) -> None:
    """A job that ended at the very moment of the removal wrote its news all the same."""
    one = await endpoint(stage)
    await waiting(stage, one)
    await stage.change("DELETE FROM webhook_endpoints WHERE id = %s", one.id)
    (claim,) = await claimed(stage)
    assert (claim.url, claim.secrets) == (None, ())
    assert await settled(stage, claim, Verdict("dropped", error="endpoint_disabled"))
    assert await claimed(stage) == []


async def test_two_secrets_sign_until_the_overlap_ends(stage: Stage) -> None:
    one = await endpoint(stage)
    async with stage.database.begin() as conn:
        assert await webhooks.rotate(conn, stage.tenant_id, one.id, secret=NEXT, overlap_seconds=3600)
    await waiting(stage, one, 2)
    (during,) = await claimed(stage, limit=1)
    assert during.secrets == (NEXT, SECRET)
    await stage.change("UPDATE webhook_endpoints SET old_secret_until = now() WHERE id = %s", one.id)
    (after,) = await claimed(stage, limit=1)
    assert after.secrets == (NEXT,)


async def test_a_tenant_with_much_news_leaves_room_for_others(stage: Stage) -> None:
    other = await staged(stage.database)
    loud, quiet = await endpoint(stage), await endpoint(other)
    await waiting(stage, loud, 20)
    await waiting(other, quiet, 1)
    found = await claimed(stage, limit=10, each=8)
    assert {claim.tenant for claim in found} == {stage.tenant, other.tenant}
    assert len(found) == 9
    assert await claimed(stage, limit=10, each=8, busy=[stage.tenant_id]) == []
    assert len(await claimed(stage, limit=10, each=8, after_tenant_id=stage.tenant_id)) == 0
    assert len(await claimed(stage, limit=10, each=8)) == 8


async def test_the_log_is_its_owners_newest_first_in_pages(stage: Stage) -> None:
    one, other = await endpoint(stage), await staged(stage.database)
    made = await waiting(stage, one, 5)
    async with stage.database.connect() as conn:
        first, cursor = await delivery_log.list_deliveries(conn, stage.tenant_id, one.id, limit=3)
        rest, end = await delivery_log.list_deliveries(conn, stage.tenant_id, one.id, limit=3, cursor=cursor)
        assert await delivery_log.list_deliveries(conn, other.tenant_id, one.id) == ([], None)
        assert await delivery_log.get(conn, other.tenant_id, made[0]) is None
    assert [row.id for row in first + rest] == made[::-1]
    assert end is None


async def test_removing_an_endpoint_takes_its_log_along(stage: Stage) -> None:
    one, kept = await endpoint(stage), await endpoint(stage)
    await waiting(stage, one, 2)
    await waiting(stage, kept, 1)
    async with stage.database.begin() as conn:
        assert await webhooks.remove(conn, stage.tenant_id, one.id)
        assert not await webhooks.remove(conn, stage.tenant_id, one.id)
    assert await stage.query("SELECT endpoint_id::text FROM webhook_deliveries") == [(kept.id,)]


async def test_what_has_ended_long_ago_is_pruned_and_what_waits_is_kept(stage: Stage) -> None:
    one = await endpoint(stage)
    await waiting(stage, one, 2)
    (claim,) = await claimed(stage, limit=1)
    await settled(stage, claim, DELIVERED)
    async with stage.database.begin() as conn:
        assert await delivery_log.prune(conn, 3_600, 100) == 0
        assert await delivery_log.prune(conn, -1, 100) == 1
    assert [status for status, *_ in await log(stage, one)] == ["pending"]


async def test_a_verdict_for_another_try_than_the_claims_is_none(stage: Stage) -> None:
    one = await endpoint(stage)
    await waiting(stage, one)
    (claim,) = await claimed(stage)
    assert not await settled(stage, replace(claim, attempts=7), DELIVERED)
