"""The courier over a real outbox: bounded, fair between tenants, and never stopped by what a receiver does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from compaction.core.webhooks import EVENTS, Attempt
from compaction.store import outbox, webhooks
from compaction.store.engine import Database
from compaction.webhooks.sender import Letter
from tests.integration.store.stage import Stage, staged
from worker.webhooks import HANDFUL, MAX_IN_FLIGHT, TENANT_IN_FLIGHT, Courier

pytestmark = pytest.mark.anyio

SECRET = "whsec_" + "A" * 43 + "="


@dataclass
class Sender:
    """Counts its letters; those to a `held` tenant or address wait until `let_go`, those to a `broken` tenant fail."""

    held: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)
    sent: list[Letter] = field(default_factory=list)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)
    under_way: int = 0
    most: int = 0

    async def send(self, letter: Letter) -> Attempt:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        self.sent.append(letter)
        if {letter.tenant, letter.url} & self.held:
            await self.let_go.wait()
        else:
            await asyncio.sleep(0)
        self.under_way -= 1
        return Attempt(status=500) if letter.tenant in self.broken else Attempt(status=200)

    def to(self, tenant: str) -> int:
        return sum(1 for letter in self.sent if letter.tenant == tenant)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(database_url, pool_size=10)
    yield opened
    await opened.close()


def courier(database: Database, sender: Sender) -> Courier:
    return Courier(database, sender, timeout_seconds=30.0, base_seconds=3600.0)


async def tenant_with_news(database: Database, count: int) -> Stage:
    """A tenant whose one endpoint has so many deliveries waiting."""
    stage = await staged(database)
    await news_for(stage, "https://x.example.com/", count)
    return stage


async def news_for(stage: Stage, url: str, count: int) -> None:
    """A new endpoint of the tenant with so many deliveries waiting."""
    async with stage.database.begin() as conn:
        one = await webhooks.add(conn, stage.tenant_id, url=url, events=EVENTS, secret=SECRET)
        for _ in range(count):
            await outbox.ping(conn, stage.tenant_id, one.id)


async def counted(stage: Stage) -> dict[str, int]:
    query = "SELECT status, count(*) FROM webhook_deliveries WHERE tenant_id = %s GROUP BY status"
    return {row[0]: row[1] for row in await stage.query(query, stage.tenant_id)}


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    """Returns when it has come to pass."""
    async with asyncio.timeout(60):
        while not await look():  # noqa: ASYNC110 - the database rings no bell
            await asyncio.sleep(0.01)


async def test_all_that_is_due_is_delivered_once(database: Database) -> None:
    stage, sender = await tenant_with_news(database, 100), Sender()
    one = courier(database, sender)
    await one.deliver_due()
    await one.idle()
    assert await counted(stage) == {"delivered": 100}
    assert len({letter.delivery_id for letter in sender.sent}) == len(sender.sent) == 100
    assert sender.most < TENANT_IN_FLIGHT + HANDFUL


async def test_a_tenant_whose_receivers_hang_delays_only_itself(database: Database) -> None:
    slow, quick, sender = await tenant_with_news(database, 100), await tenant_with_news(database, 30), Sender()
    sender.held.add(slow.tenant)
    one = courier(database, sender)
    one.turn()

    async def quick_is_done() -> bool:
        return await counted(quick) == {"delivered": 30}

    async def slow_is_done() -> bool:
        one.turn()
        return await counted(slow) == {"delivered": 100}

    await until(quick_is_done)
    assert sender.to(slow.tenant) < TENANT_IN_FLIGHT + HANDFUL
    sender.let_go.set()
    await until(slow_is_done)
    await one.idle()


async def test_a_receiver_that_hangs_leaves_room_for_its_tenants_others(database: Database) -> None:
    stage, sender = await staged(database), Sender()
    hanging, quick = "https://hanging.example.com/", "https://quick.example.com/"
    sender.held.add(hanging)
    await news_for(stage, hanging, 60)
    await news_for(stage, quick, 40)
    one = courier(database, sender)
    one.turn()

    async def quick_is_done() -> bool:
        return await counted(stage) == {"delivered": 40, "pending": 60}

    await until(quick_is_done)
    assert sum(1 for letter in sender.sent if letter.url == hanging) <= HANDFUL
    sender.let_go.set()
    await one.idle()


async def test_what_has_failed_for_three_days_is_given_up_without_a_call(database: Database) -> None:
    stage, sender = await tenant_with_news(database, 40), Sender()
    await stage.change("UPDATE webhook_deliveries SET attempts = 9, created_at = now() - interval '4 days'")
    one = courier(database, sender)
    await one.deliver_due()
    await one.idle()
    assert (await counted(stage), sender.sent) == ({"failed": 40}, [])


async def test_never_more_are_under_way_than_agreed(database: Database) -> None:
    stages, sender = [await tenant_with_news(database, 12) for _ in range(12)], Sender()
    sender.held |= {stage.tenant for stage in stages}
    one = courier(database, sender)
    one.turn()

    async def is_full() -> bool:
        return sender.under_way == MAX_IN_FLIGHT

    async def is_done() -> bool:
        one.turn()
        return len(sender.sent) == 144

    await until(is_full)
    sender.let_go.set()
    await until(is_done)
    await one.idle()
    assert sender.most == MAX_IN_FLIGHT
    assert len({letter.delivery_id for letter in sender.sent}) == 144


async def test_what_fails_waits_for_its_time(database: Database) -> None:
    stage, sender = await tenant_with_news(database, 3), Sender()
    sender.broken.add(stage.tenant)
    one = courier(database, sender)
    for _ in range(3):
        await one.deliver_due()
        await one.idle()
    assert (await counted(stage), len(sender.sent)) == ({"pending": 3}, 3)


async def test_without_a_receiver_nothing_is_sent(database: Database) -> None:
    stage, sender = await tenant_with_news(database, 2), Sender()
    await stage.change("UPDATE webhook_endpoints SET enabled = false WHERE tenant_id = %s", stage.tenant_id)
    one = courier(database, sender)
    await one.deliver_due()
    await one.idle()
    assert (await counted(stage), sender.sent) == ({"dropped": 2}, [])


async def test_a_database_that_is_away_stops_no_courier(database: Database) -> None:
    """The turn is missed, and the next one delivers."""
    stage, sender = await tenant_with_news(database, 1), Sender()
    await stage.change("ALTER TABLE webhook_deliveries RENAME TO away")
    one = courier(database, sender)
    await one.deliver_due()
    await stage.change("ALTER TABLE away RENAME TO webhook_deliveries")
    await one.deliver_due()
    await one.idle()
    assert await counted(stage) == {"delivered": 1}


async def test_a_secret_that_cannot_be_read_keeps_nobody_elses_news(database: Database) -> None:
    """Its key is missing from COMPACTD_BODY_KEYS: that endpoint waits for it, unsigned news go nowhere."""
    lost, other, sender = await tenant_with_news(database, 1), await tenant_with_news(database, 1), Sender()
    sealed = b"\x02\x02k9" + b"x" * 40
    await lost.change("UPDATE webhook_endpoints SET secret = %s WHERE tenant_id = %s", sealed, lost.tenant_id)
    one = courier(database, sender)
    await one.deliver_due()
    await one.idle()
    assert (await counted(lost), await counted(other)) == ({"pending": 1}, {"delivered": 1})
    assert sender.to(lost.tenant) == 0
    query = "SELECT last_error FROM webhook_deliveries WHERE tenant_id = %s"
    assert await lost.query(query, lost.tenant_id) == [("secret_unreadable",)]
