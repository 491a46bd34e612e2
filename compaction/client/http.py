"""One connection to the API: sends, turns problems into errors, tries again what is safe to try again.

Every POST goes out under an Idempotency-Key of its own, the same in each try, so that trying again creates nothing
twice. Connections are kept and used again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from uuid import uuid4

import httpx2

from compaction.client import address
from compaction.client.errors import Closed, Refused, Unreachable, refusal
from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json

CONNECT_SECONDS = 5.0  # nobody listens there, or the network is broken
READ_SECONDS = 120.0  # longer than any long-poll that the API allows by default
MAX_TRIES = 4  # with the pauses below, an API that restarts within two seconds is not noticed
MAX_PAUSE_SECONDS = 10.0  # between two tries, whatever Retry-After says
FIRST_PAUSE_SECONDS = 0.3
JITTER = 0.25  # so that callers who were refused together do not come back together
BUSY = frozenset({429, 502, 503, 504})  # the API's own two, and what proxies answer while it restarts
_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})  # no proxy stands between us and these

Query = Mapping[str, str | int | None]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is no refusal: its status, headers (any case) and body, decoded too: None for what is no JSON."""

    status: int
    headers: Mapping[str, str]
    body: Json
    content: bytes = field(repr=False)


class Http:
    """Requests with the key, JSON in and out; all of them raise Closed after `close`. `transport` is for tests.

    Raises BadAddress for an address or a key that cannot be one.
    """

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        max_tries: int = MAX_TRIES,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        address.check_url(url)
        address.check_api_key(api_key)
        base = httpx2.URL(url)
        self._client = httpx2.AsyncClient(
            base_url=base,
            headers={"Authorization": f"Bearer {api_key}", "Accept": "application/json"},
            timeout=httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            transport=transport,
            trust_env=base.host not in _LOCAL,
        )
        self._max_tries = max_tries
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
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - JSON
        """The decoded answer; None for an empty one. Raises Unreachable or Refused."""
        return (await self.send(method, path, body=body, query=query, headers=headers)).body

    async def send(  # noqa: PLR0913 - the parts of a request
        self,
        method: str,
        path: str,
        *,
        body: Json = None,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        tolerated: frozenset[int] = frozenset(),
    ) -> Answer:
        """The answer, after as many tries as it takes and are allowed; an error status that is `tolerated` is one too.

        Raises Unreachable or Refused.
        """
        content = None if body is None else jsonbytes.encode(body)
        given = _headers(method, content, headers)
        parameters = {name: str(value) for name, value in (query or {}).items() if value is not None}
        pause_seconds, maybe_done = FIRST_PAUSE_SECONDS, False
        for tries_left in reversed(range(self._max_tries)):
            self._check_open()
            wanted_seconds: float | None = None
            try:
                answer = await self._client.request(method, path, content=content, params=parameters, headers=given)
            except httpx2.TransportError as error:
                if not tries_left:
                    raise self._unreachable(error) from None
                maybe_done = True
            else:
                under_way = maybe_done and answer.status_code == HTTPStatus.CONFLICT
                if answer.status_code in tolerated or not tries_left or not (_busy(answer) or under_way):
                    return _decoded(answer, tolerated)
                wanted_seconds = _retry_after_seconds(answer)
            wanted_seconds = pause_seconds if wanted_seconds is None else wanted_seconds
            await asyncio.sleep(min(wanted_seconds, MAX_PAUSE_SECONDS) * (1 + JITTER * random.random()))  # noqa: S311 - no secret
            pause_seconds *= 2
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def lines(
        self, path: str, content: AsyncIterable[bytes], *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[Json]]:
        """Posts a stream of bytes; the answer's JSON lines as they come. Never sent twice."""
        self._check_open()
        try:
            async with self._client.stream("POST", path, content=content, params=query, headers=headers) as answer:
                if answer.is_error:
                    await answer.aread()
                    _decoded(answer)
                yield (jsonbytes.decode(line) async for line in answer.aiter_lines() if line.strip())
        except httpx2.TransportError as error:
            raise self._unreachable(error) from None

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[httpx2.Response]:
        """A GET whose body is read as it comes; opened once. Raises Unreachable or Refused, also while it is read."""
        self._check_open()
        try:
            async with self._client.stream("GET", path, headers=headers) as answer:
                if answer.is_error:
                    await answer.aread()
                    _decoded(answer)
                yield answer
        except httpx2.TransportError as error:
            raise self._unreachable(error) from None

    def _check_open(self) -> None:
        if self._client.is_closed:
            raise Closed

    def _unreachable(self, error: httpx2.TransportError) -> Unreachable:
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            return Unreachable(f"Nobody answers at {self.url}.")
        return Unreachable(f"The connection to {self.url} broke ({type(error).__name__}).")


def is_passing(error: Refused) -> bool:
    """Whether a refusal says nothing about the call: the API or a proxy was busy or away."""
    return error.status in BUSY


def _headers(method: str, content: bytes | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    given = {} if content is None else {"Content-Type": "application/json"}
    if method == "POST":
        given["Idempotency-Key"] = uuid4().hex
    return given | dict(headers or {})


def _busy(answer: httpx2.Response) -> bool:
    return answer.status_code in BUSY


def _decoded(answer: httpx2.Response, tolerated: frozenset[int] = frozenset()) -> Answer:
    status = answer.status_code
    try:
        value = jsonbytes.decode(answer.content) if answer.content else None
    except ValueError:
        value = None
    if status >= HTTPStatus.BAD_REQUEST and status not in tolerated:
        raise refusal(status, value if isinstance(value, dict) else {})
    return Answer(status, answer.headers, value, answer.content)


def _retry_after_seconds(answer: httpx2.Response) -> float | None:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() and len(text) < 6 else None  # noqa: PLR2004 - a day has five digits
