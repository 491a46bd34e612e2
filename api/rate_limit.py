"""How many requests a key may make: a token bucket in Redis for all processes, or one of our own while Redis is away.

Each answer to a call with a key says how the key stands (RateLimit, RateLimit-Policy); a refused one says when to come
again (Retry-After). Without the setting nothing is counted and Redis is not asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compaction import telemetry
from compaction.core.token_bucket import Bucket, Draw, Flow, draw, drawn, flow_of
from compaction.errors import TooManyRequests

SCRIPT = Path(__file__).with_name("rate_limit.lua")
PREFIX = "compactd:requests:"
ANSWER_SECONDS = 0.25  # Redis answers within a millisecond; a request should not wait long for one that does not
AWAY_SECONDS = 2.0  # so long nobody asks a Redis that did not answer
MAX_LOCAL_KEYS = 10_000  # buckets kept while Redis is away; the ones least lately used go first
WINDOW_SECONDS = 60  # the setting counts by the minute

_log = telemetry.logger("api")


class Bucketed(Protocol):
    """Buckets by name."""

    async def draw(self, name: str, flow: Flow) -> Draw:
        """One request."""
        ...


class LocalBuckets:
    """Buckets of this process alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, Bucket] = {}

    async def draw(self, name: str, flow: Flow) -> Draw:
        """One request, by this process's clock."""
        bucket, outcome = draw(self._buckets.pop(name, None), self._clock(), flow)
        self._buckets[name] = bucket
        if len(self._buckets) > MAX_LOCAL_KEYS:
            del self._buckets[next(iter(self._buckets))]
        return outcome


class SharedBuckets:
    """Buckets in Redis, on its clock. Raises RedisError, OSError or TimeoutError when it is away."""

    def __init__(self, redis_url: str) -> None:
        once = Retry(NoBackoff(), 1)  # a connection that the server closed while it was idle is opened again
        self._redis = Redis.from_url(
            redis_url, socket_timeout=ANSWER_SECONDS, socket_connect_timeout=ANSWER_SECONDS, retry=once
        )
        self._script = self._redis.register_script(SCRIPT.read_text(encoding="utf-8"))

    async def draw(self, name: str, flow: Flow) -> Draw:
        """One request, by Redis's clock."""
        answer = await self._script(keys=[PREFIX + name], args=[flow.capacity, flow.per_second / 1000])
        allowed, level = cast("list[Any]", cast("Any", answer))
        return drawn(float(level), flow, allowed=bool(allowed))

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._redis.aclose()


class KeyLimit:
    """The limit of every key: shared while Redis answers, and else each process keeps to it by itself."""

    def __init__(self, requests_per_minute: int, redis_url: str) -> None:
        self._quota = requests_per_minute
        self._flow = flow_of(requests_per_minute)
        self._shared = SharedBuckets(redis_url)
        self._local = LocalBuckets()
        self._away_until = 0.0

    async def check(self, scope: Scope, key_id: str) -> None:
        """Counts one request of the key and notes for its answer how it stands. Raises TooManyRequests."""
        outcome = await self._draw(key_id)
        scope["state"]["rate_limit"] = self._headers(outcome)
        if not outcome.allowed:
            text = f"The key makes more than {self._quota} requests a minute. Try again after the time in Retry-After."
            raise TooManyRequests(text, retry_after_seconds=outcome.wait_seconds)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._shared.aclose()

    async def _draw(self, key_id: str) -> Draw:
        if time.monotonic() >= self._away_until:
            try:
                return await self._shared.draw(key_id, self._flow)
            except (RedisError, OSError, TimeoutError) as error:
                self._away_until = time.monotonic() + AWAY_SECONDS
                _log.warning("rate_limit.local", error=type(error).__name__)
        return await self._local.draw(key_id, self._flow)

    def _headers(self, outcome: Draw) -> dict[str, str]:
        """The fields of the IETF's RateLimit header draft: what may follow at once, and when the bucket is full."""
        return {
            "RateLimit-Policy": f'"key";q={self._quota};w={WINDOW_SECONDS}',
            "RateLimit": f'"key";r={outcome.left};t={round(outcome.full_seconds)}',
        }


class RateHeaders:
    """Puts what `KeyLimit` noted into the answer's headers. Plain ASGI: streams are passed on as they come."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; other kinds of traffic pass through."""

        async def sending(message: Message) -> None:
            noted = scope.get("state", {}).get("rate_limit")
            if noted and message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(noted)
            await send(message)

        await self._app(scope, receive, sending if scope["type"] == "http" else send)
