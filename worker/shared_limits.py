"""The limits' state in Redis, through one script. That Redis is away or has lost its memory is told, never guessed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from compaction.core.rate_window import SLACK_SECONDS, Granted, Limits, Spend

SCRIPT = Path(__file__).with_name("limits.lua")
BUCKETS = 60  # of a window: a grant counts up to a sixtieth longer than it must
ANSWER_SECONDS = 1.0  # Redis answers within a millisecond; who has not by then is away
CALL_SECONDS = 60.0  # a call in flight counts so long after its worker's last sign of life, as a lease does
PREFIX = "compactd:limits:"


class Unreachable(Exception):
    """Redis did not answer."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The answer to a request for a place: nothing stands in the way, or what does, and for how long.

    `born` names the state, `age_seconds` tells for how long it has been kept: another one than before means that Redis
    has lost its memory. `bucket` is for `settle`.
    """

    obstacle: str
    wait_seconds: float
    bucket: int
    born: int
    age_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call that wants to begin. `spend` already fits the rates."""

    model: str
    tenant: str
    call: str
    spend: Spend
    settle_seconds: float


class SharedLimits:
    """What all workers with one credential have used, and the calls in flight of each tenant."""

    def __init__(self, redis_url: str, provider: str, limits: Limits) -> None:
        once = Retry(NoBackoff(), 1)  # a connection that the server closed while it was idle is opened again
        self._redis = Redis.from_url(
            redis_url, socket_timeout=ANSWER_SECONDS, socket_connect_timeout=ANSWER_SECONDS, retry=once
        )
        self._script = self._redis.register_script(SCRIPT.read_text(encoding="utf-8"))
        self._provider = provider
        self._limits = [-1 if limit is None else limit for limit in limits.rates.limits()]
        self._tenant_calls = -1 if limits.tenant_calls is None else limits.tenant_calls
        bucket_seconds = limits.window_seconds / BUCKETS
        self._bucket_ms = max(1, round(bucket_seconds * 1000))
        self._span = math.ceil((limits.window_seconds + SLACK_SECONDS) / bucket_seconds) + 1

    async def take(self, asked: Asked) -> Taken:
        """A place for the call, or what stands in its way. Raises Unreachable."""
        spend = asked.spend
        obstacle, wait_ms, bucket, born, now_ms = await self._run(
            "take",
            asked.model,
            asked.tenant,
            _milliseconds(asked.settle_seconds),
            *self._limits,
            spend.requests,
            spend.input_tokens,
            spend.output_tokens,
            self._tenant_calls,
            asked.call,
            _milliseconds(CALL_SECONDS),
        )
        age_seconds = (int(now_ms) - int(born)) / 1000
        return Taken(obstacle.decode(), int(wait_ms) / 1000, int(bucket), int(born), age_seconds)

    async def settle(self, asked: Asked, taken: Taken, correction: Spend, pause_seconds: float) -> None:
        """The call has ended: what it took is corrected, and everybody pauses if the provider wants it."""
        costs = (correction.requests, correction.input_tokens, correction.output_tokens)
        ended = (taken.born, taken.bucket, *costs, asked.call, _milliseconds(pause_seconds))
        await self._run("settle", asked.model, asked.tenant, *ended)

    async def record(self, model: str, grants: Iterable[Granted], now_seconds: float) -> int:
        """Tells of grants that this state does not know; which state that is. Raises Unreachable."""
        told: list[int] = []
        for grant in grants:
            spend = grant.spend
            told += [_milliseconds(now_seconds - grant.at_seconds), spend.requests]
            told += [spend.input_tokens, spend.output_tokens]
        born, _ = await self._run("record", model, "", *told)
        return int(born)

    async def renew(self, model: str, tenant: str, calls: Iterable[str]) -> None:
        """The calls are still in flight."""
        await self._run("renew", model, tenant, _milliseconds(CALL_SECONDS), *calls)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._redis.aclose()

    async def _run(self, act: str, model: str, tenant: str, *values: float | str) -> list[bytes]:
        keys = [f"{PREFIX}{self._provider}:{model}", f"{PREFIX}{self._provider}:calls:{tenant}"]
        try:
            answer = await self._script(keys=keys, args=[act, self._bucket_ms, self._span, *values])
        except (RedisError, OSError, TimeoutError) as error:
            raise Unreachable(type(error).__name__) from None
        return cast("list[bytes]", cast("Any", answer))


def _milliseconds(seconds: float) -> int:
    return round(max(0.0, seconds) * 1000)
