"""The courier: while this worker leads it takes what is due from the outbox and sends it, a few at a time.

A delivery is claimed for a little longer than a try may take. Should the process die, it is due again by itself: each
is made at least once, and the same webhook-id tells a receiver that it had it before.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Protocol, TypeVar

from compaction import telemetry
from compaction.core.webhooks import BACKOFF_BASE_SECONDS, DISABLE_DAYS, Attempt, Standing, Verdict, is_over, judge
from compaction.errors import CompactdError
from compaction.store import deliveries
from compaction.store.deliveries import Claimed
from compaction.store.engine import Database
from compaction.webhooks.sender import Letter

MAX_IN_FLIGHT = 64  # tries at once; a receiver takes some hundred milliseconds, so hundreds of deliveries a second
TENANT_IN_FLIGHT = 16  # with so many under way a tenant waits, so that its slow receivers delay its own news alone
ENDPOINT_IN_FLIGHT = 4  # with so many an endpoint waits, so that a slow one leaves room for its tenant's others
HANDFUL = 8  # taken of one tenant at once
CLAIM_MARGIN_SECONDS = 5.0  # over the longest try, to write down what it came to
LOOK_SECONDS = 0.5  # how soon others are looked at while a busy tenant's receivers take their time
DAY_SECONDS = 86_400.0

Key = TypeVar("Key")

_log = telemetry.logger("webhooks")
_NOBODY = Verdict("dropped", error="endpoint_disabled")
_GIVEN_UP = Verdict("failed", error="given_up")


class Sends(Protocol):
    """Makes one try."""

    async def send(self, letter: Letter) -> Attempt:
        """What it came to; never raises."""
        ...


class Courier:
    """Delivers for ever, woken by the reconciler's turns; in between it goes on by itself while anything is due."""

    def __init__(
        self,
        database: Database,
        sender: Sends,
        *,
        timeout_seconds: float,
        base_seconds: float = BACKOFF_BASE_SECONDS,
        disable_days: float = DISABLE_DAYS,
    ) -> None:
        self._database = database
        self._sender = sender
        self._claim_seconds = timeout_seconds + CLAIM_MARGIN_SECONDS
        self._base_seconds = base_seconds
        self._disable_seconds = disable_days * DAY_SECONDS
        self._round: asyncio.Task[None] | None = None
        self._tries: set[asyncio.Task[None]] = set()
        self._tenants: Counter[int] = Counter()  # deliveries under way by tenant
        self._endpoints: Counter[str] = Counter()  # and by endpoint
        self._after_tenant_id = 0

    def turn(self) -> None:
        """Has what is due delivered; returns at once."""
        if self._round is None or self._round.done():
            self._round = asyncio.create_task(self.deliver_due(), name="webhook courier")

    async def deliver_due(self) -> None:
        """Takes and sends until nothing is due; what is under way goes on after that."""
        try:
            while True:
                await self._wait_for_room()
                passed_over = _at_least(self._tenants, TENANT_IN_FLIGHT), _at_least(self._endpoints, ENDPOINT_IN_FLIGHT)
                if await self._take(*passed_over):
                    continue
                if not any(passed_over):
                    return
                if self._tries:
                    await asyncio.wait(self._tries, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        except CompactdError as error:
            _log.warning("webhook.missed", code=error.code)
        except Exception as error:  # noqa: BLE001 - the next turn tries again
            _log.error("webhook.fault", **telemetry.failure(error))

    async def idle(self) -> None:
        """Waits for the round and the tries under way."""
        while under_way := {*self._tries, *([self._round] if self._round and not self._round.done() else [])}:
            await asyncio.wait(under_way)

    async def _wait_for_room(self) -> None:
        while len(self._tries) >= MAX_IN_FLIGHT:
            await asyncio.wait(self._tries, return_when=asyncio.FIRST_COMPLETED)

    async def _take(self, busy: list[int], slow: list[str]) -> bool:
        """A handful of each tenant in turn. Whether there was any, or others are to be looked at."""
        async with self._database.begin() as conn:
            claimed = await deliveries.claim(
                conn,
                limit=MAX_IN_FLIGHT - len(self._tries),
                each=HANDFUL,
                claim_seconds=self._claim_seconds,
                busy=busy,
                slow=slow,
                after_tenant_id=self._after_tenant_id,
            )
        wrapped = not claimed and self._after_tenant_id > 0
        self._after_tenant_id = max((one.tenant_id for one in claimed), default=0)
        for one in claimed:
            self._begin(one)
        return bool(claimed) or wrapped

    def _begin(self, claimed: Claimed) -> None:
        self._tenants[claimed.tenant_id] += 1
        self._endpoints[claimed.endpoint_id] += 1
        task = asyncio.create_task(self._deliver(claimed), name="webhook delivery")
        self._tries.add(task)
        task.add_done_callback(lambda done: self._end(done, claimed))

    def _end(self, task: asyncio.Task[None], claimed: Claimed) -> None:
        self._tries.discard(task)
        self._tenants -= Counter([claimed.tenant_id])  # which drops what is nought
        self._endpoints -= Counter([claimed.endpoint_id])

    async def _deliver(self, claimed: Claimed) -> None:
        verdict = await self._verdict(claimed)
        try:
            async with self._database.begin() as conn:
                await deliveries.settle(conn, claimed, verdict)
        except Exception as error:  # noqa: BLE001 - it is due again when the claim ends, and is sent once more
            _log.warning("webhook.not_settled", delivery_id=claimed.id, **telemetry.failure(error))
            return
        facts = {"delivery_id": claimed.id, "attempt": claimed.attempts, "status": verdict.status}
        if verdict.error is not None:
            facts |= {"error": verdict.error, "http_status": verdict.http_status, "disabled": verdict.disable}
        _log.info("webhook.tried", **facts)

    async def _verdict(self, claimed: Claimed) -> Verdict:
        standing = Standing(claimed.attempts, claimed.age_seconds, claimed.failing_seconds)
        if claimed.url is None:
            return _NOBODY
        if is_over(standing):
            return _GIVEN_UP
        attempt = Attempt(problem="secret_unreadable")
        if claimed.secrets:
            letter = Letter(claimed.id, claimed.tenant, claimed.url, claimed.secrets, claimed.payload)
            attempt = await self._sender.send(letter)
        return judge(
            attempt,
            standing,
            dice=random.random(),  # noqa: S311 - it spreads retries, it hides nothing
            base_seconds=self._base_seconds,
            disable_seconds=self._disable_seconds,
        )


def _at_least(counted: Counter[Key], limit: int) -> list[Key]:
    return [key for key, count in counted.items() if count >= limit]
