"""One connection to the API: sends, turns problems into errors, tries again what is safe to try again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from compaction.client.errors import Refused, Unreachable
from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json

CONNECT_SECONDS = 5.0  # nobody listens there, or the network is broken
READ_SECONDS = 120.0  # longer than any long-poll that the API allows by default
MAX_TRIES = 3  # for 429, 503 and broken connections: what lasts longer is told
MAX_PAUSE_SECONDS = 10.0  # between two tries, whatever Retry-After says
FIRST_PAUSE_SECONDS = 0.3
BUSY = frozenset({429, 503})
_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})  # no proxy stands between us and these


class Http:
    """Requests with the key, JSON in and out. `transport` is for tests."""

    def __init__(self, url: str, api_key: str, *, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        base = httpx2.URL(url)
        self._client = httpx2.AsyncClient(
            base_url=base,
            headers={"Authorization": f"Bearer {api_key}", "Accept": "application/json"},
            timeout=httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            transport=transport,
            trust_env=base.host not in _LOCAL,
        )
        self.url = url

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def json(
        self,
        method: str,
        path: str,
        *,
        body: Json = None,
        query: Mapping[str, str | int | None] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - JSON
        """The decoded answer; None for an empty one. Safe to send again: the API knows repeated calls by their keys."""
        content = None if body is None else jsonbytes.encode(body)
        given = dict(headers or {}) | ({} if body is None else {"Content-Type": "application/json"})
        parameters = {name: str(value) for name, value in (query or {}).items() if value is not None}
        pause_seconds = FIRST_PAUSE_SECONDS
        for tries_left in reversed(range(MAX_TRIES)):
            try:
                answer = await self._client.request(method, path, content=content, params=parameters, headers=given)
            except httpx2.TransportError as error:
                if not tries_left:
                    raise self._unreachable(error) from None
            else:
                if answer.status_code not in BUSY or not tries_left:
                    return _decoded(answer.status_code, answer.content)
                pause_seconds = min(_retry_after_seconds(answer) or pause_seconds, MAX_PAUSE_SECONDS)
            await asyncio.sleep(pause_seconds)
            pause_seconds *= 2
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def lines(
        self, path: str, content: AsyncIterable[bytes], *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[Json]]:
        """Posts a stream of bytes; the answer's JSON lines as they come. Never sent twice."""
        try:
            async with self._client.stream("POST", path, content=content, params=query, headers=headers) as answer:
                if answer.is_error:
                    _decoded(answer.status_code, await answer.aread())
                yield (jsonbytes.decode(line) async for line in answer.aiter_lines() if line.strip())
        except httpx2.TransportError as error:
            raise self._unreachable(error) from None

    def _unreachable(self, error: httpx2.TransportError) -> Unreachable:
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            return Unreachable(f"Nobody answers at {self.url}.")
        return Unreachable(f"The connection to {self.url} broke ({type(error).__name__}).")


def _decoded(status: int, content: bytes) -> Json:
    try:
        value = jsonbytes.decode(content) if content else None
    except ValueError:
        value = None
    if status >= httpx2.codes.BAD_REQUEST:
        raise Refused(status, value if isinstance(value, dict) else {})
    return value


def _retry_after_seconds(answer: httpx2.Response) -> float | None:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() and len(text) < 6 else None  # noqa: PLR2004 - a day has five digits
