"""Places for calls on a real Redis: several processes' limiters side by side, here in one loop.

The windows are short; what must hold is the same: no window anywhere holds more than the limit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import redis

from compaction.core.rate_window import SLACK_SECONDS, Limits, Rates, Spend
from compaction.errors import Throttled
from ops.embedded import Valkey
from worker import limiter as limiter_module
from worker.limiter import Limiter, Place
from worker.shared_limits import SharedLimits

pytestmark = pytest.mark.anyio

MODEL = "claude-haiku-4-5"
WINDOW_SECONDS = 1.0  # and two seconds of slack: a grant counts for three
OPEN = Limits(Rates(requests=1_000))


class Office:
    """Limiters that share a Redis, each as a process of its own would have one."""

    def __init__(self, url: str, limits: Limits, count: int) -> None:
        self._url, self._limits, self._count = url, limits, count
        self.granted: list[tuple[float, Spend]] = []
        self.limiters: list[Limiter] = []

    async def sharers(self) -> int:
        return self._count

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Office]:
        async with AsyncExitStack() as stack:
            for _ in range(self._count):
                shared = SharedLimits(self._url, "claude-test", self._limits)
                stack.push_async_callback(shared.aclose)
                limiter = Limiter(shared, self._limits, sharers=self.sharers)
                self.limiters.append(limiter)
                keeper = asyncio.create_task(limiter.keep_for_ever())
                stack.callback(keeper.cancel)
            yield self

    async def call(self, number: int, spend: Spend, *, tenant: str = "t", tries: int = 200) -> Place:
        """A place for a call through the limiter `number`; who is sent away comes again."""
        for _ in range(tries):
            try:
                place = await self.limiters[number].enter(MODEL, tenant, spend)
            except Throttled:
                await asyncio.sleep(0.1)
                continue
            self.granted.append((time.monotonic(), place.granted.spend))
            return place
        raise AssertionError("never got a place")

    async def calls(self, count: int, spend: Spend) -> None:
        """So many calls at once, in turn through all limiters."""
        await asyncio.gather(*(self.call(number % self._count, spend) for number in range(count)))

    def most(self, of: Callable[[Spend], int]) -> int:
        """The most that any window holds."""
        return max(
            sum(of(spend) for at, spend in self.granted if start <= at < start + WINDOW_SECONDS)
            for start, _ in self.granted
        )


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause after a loss of memory, and the keeper's rounds, in proportion to the short window."""
    monkeypatch.setattr(limiter_module, "SETTLE_SECONDS", 0.6)
    monkeypatch.setattr(limiter_module, "KEEP_SECONDS", 0.2)


async def test_many_processes_together_never_exceed_the_limit_of_requests(redis_url: str) -> None:
    async with Office(redis_url, Limits(Rates(requests=5), None, WINDOW_SECONDS), 3).opened() as office:
        await office.calls(17, Spend())
    assert office.most(lambda spend: spend.requests) <= 5
    spread = office.granted[-1][0] - office.granted[0][0]
    assert spread >= 3 * (WINDOW_SECONDS + SLACK_SECONDS)  # 17 calls need four windows


async def test_tokens_are_limited_like_requests_and_a_correction_makes_room(redis_url: str) -> None:
    """Reserved are 400 of 1,000; a call that in truth took 100 leaves room for three more at once."""
    limits = Limits(Rates(input_tokens=1_000, output_tokens=100), None, WINDOW_SECONDS)
    async with Office(redis_url, limits, 2).opened() as office:
        first = await office.call(0, Spend(1, 400, 25))
        office.limiters[0].leave(first, Spend(1, 100, 10))
        await asyncio.sleep(0.3)
        began = time.monotonic()
        await office.call(1, Spend(1, 400, 25), tries=1)
        await office.call(0, Spend(1, 400, 25), tries=1)
        with pytest.raises(AssertionError, match="never"):
            await office.call(1, Spend(1, 200, 0), tries=0)
        await office.call(1, Spend(1, 200, 0))
        assert time.monotonic() - began > WINDOW_SECONDS


async def test_a_call_that_must_wait_long_is_sent_away_with_the_time_to_come_again(redis_url: str) -> None:
    limits = Limits(Rates(requests=1), None, 60.0)
    async with Office(redis_url, limits, 1).opened() as office:
        await office.call(0, Spend())
        with pytest.raises(Throttled) as told:
            await office.limiters[0].enter(MODEL, "t", Spend())
        assert told.value.retry_after_seconds is not None
        assert 55 < told.value.retry_after_seconds <= 64


async def test_a_tenants_calls_in_flight_are_limited_and_another_tenant_is_not_kept(redis_url: str) -> None:
    async with Office(redis_url, Limits(tenant_calls=2), 2).opened() as office:
        places = [await office.call(number, Spend()) for number in (0, 1)]
        waiting = asyncio.create_task(office.call(0, Spend()))
        other = await office.call(1, Spend(), tenant="other")
        await asyncio.sleep(0.3)
        assert not waiting.done()
        office.limiters[1].leave(places[1], None)
        await waiting
        for place in (places[0], other):
            office.limiters[0].leave(place, None)


async def test_a_pause_that_the_provider_asks_for_holds_for_everybody(redis_url: str) -> None:
    async with Office(redis_url, Limits(Rates(requests=100), None, WINDOW_SECONDS), 2).opened() as office:
        place = await office.call(0, Spend())
        office.limiters[0].leave(place, None, pause_seconds=1.5)
        await asyncio.sleep(0.2)
        began = time.monotonic()
        await office.call(1, Spend())
        assert time.monotonic() - began > 1.0


async def test_a_flushed_redis_learns_what_was_used_before_anybody_goes_on(redis_url: str) -> None:
    """One process has used up everything; Redis forgets; no other process may use it again."""
    async with Office(redis_url, Limits(Rates(requests=6), None, WINDOW_SECONDS), 2).opened() as office:
        await asyncio.gather(*(office.call(0, Spend()) for _ in range(6)))
        flush(redis_url)
        await asyncio.gather(*(office.call(1, Spend()) for _ in range(6)))
    assert office.most(lambda spend: spend.requests) <= 6


async def test_a_redis_that_is_flushed_again_and_again_lets_nobody_exceed_the_limit(redis_url: str) -> None:
    async with Office(redis_url, Limits(Rates(requests=6), None, WINDOW_SECONDS), 2).opened() as office:
        flushing = asyncio.create_task(repeat(lambda: flush(redis_url), 0.25))
        await office.calls(14, Spend())
        flushing.cancel()
    assert office.most(lambda spend: spend.requests) <= 6


async def test_without_redis_each_process_takes_its_share_once_the_past_has_left_the_window(tmp_path: Path) -> None:
    """Both used Redis before; it goes and does not come back."""
    with Valkey(tmp_path) as server:
        office = Office(server.url(), Limits(Rates(requests=6), None, WINDOW_SECONDS), 2)
        async with office.opened():
            await office.calls(6, Spend())
            await asyncio.to_thread(server.stop)
            await office.calls(9, Spend())
    assert office.most(lambda spend: spend.requests) <= 6
    gone = sorted(at for at, _ in office.granted)
    assert gone[6] - gone[5] >= WINDOW_SECONDS


async def test_a_redis_that_comes_back_empty_learns_what_was_used_without_it(tmp_path: Path) -> None:
    with Valkey(tmp_path) as server:
        office = Office(server.url(), Limits(Rates(requests=6), None, WINDOW_SECONDS), 2)
        async with office.opened():
            await office.calls(6, Spend())
            await asyncio.to_thread(server.stop)
            await office.calls(3, Spend())
            await asyncio.to_thread(server.spawn)
            await office.calls(20, Spend())
    assert office.most(lambda spend: spend.requests) <= 6


async def test_the_script_is_loaded_again_when_the_server_has_forgotten_it(redis_url: str) -> None:
    async with Office(redis_url, OPEN, 1).opened() as office:
        await office.call(0, Spend())
        with redis.Redis.from_url(redis_url) as client:
            client.script_flush()
        await office.call(0, Spend())


async def repeat(act: Callable[[], object], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        await asyncio.to_thread(act)


def flush(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.flushall()
