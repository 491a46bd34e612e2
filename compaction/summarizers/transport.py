"""HTTP for the SDK's client over aiohttp, whose parser is C: a third of the CPU of a streamed answer.

The SDK has such a transport too. This one can also leave an answer in the kernel for a while (`held_back`): a model
writes a hundred small packets a second, and each one that is taken at once costs a turn of the event loop.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import aiohttp
import httpx2

_HELD_BACK = "compactd_held_back"  # the response's extension
_FRAMING = "transfer-encoding"  # aiohttp chooses it by itself


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Implements httpx2's port; belongs to the loop of its first request. `verify` None means the system's trust."""

    def __init__(self, *, max_connections: int, max_idle_seconds: float, verify: ssl.SSLContext | None = None) -> None:
        self._max_connections = max_connections
        self._max_idle_seconds = max_idle_seconds
        self._verify = verify or httpx2.create_ssl_context()
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One exchange; the answer's body is read by whoever iterates it."""
        timeout = request.extensions.get("timeout", {})
        with _as_httpx():
            answer = await self._opened().request(
                request.method,
                str(request.url),
                headers=[(name, value) for name, value in request.headers.multi_items() if name != _FRAMING],
                data=_body(request),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=None,
                    connect=timeout.get("pool"),
                    sock_connect=timeout.get("connect"),
                    sock_read=timeout.get("read"),
                ),
            )
        return httpx2.Response(
            answer.status,
            headers=answer.raw_headers,
            stream=_Answer(answer),
            request=request,
            extensions={_HELD_BACK: answer},
        )

    async def aclose(self) -> None:
        """Closes all connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=self._max_connections, keepalive_timeout=self._max_idle_seconds, ssl=self._verify
            )
            jar = aiohttp.DummyCookieJar()
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=jar,
                auto_decompress=False,
                trust_env=True,  # a proxy of the environment, as the SDK's own client has it
            )
        return self._session


@contextmanager
def held_back(response: httpx2.Response) -> Iterator[None]:
    """What arrives for this response during the block waits in the kernel. Without effect on other transports."""
    answer = response.extensions.get(_HELD_BACK)
    connection = answer.connection if isinstance(answer, aiohttp.ClientResponse) else None  # None: all has arrived
    wire = None if connection is None else connection.transport
    if wire is None or not wire.is_reading():
        yield
        return
    wire.pause_reading()
    try:
        yield
    finally:
        if not wire.is_closing():
            wire.resume_reading()


class _Answer(httpx2.AsyncByteStream):
    """The body as it comes, in pieces as large as what has arrived."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx():
            async for piece in self._answer.content.iter_any():
                yield piece

    async def aclose(self) -> None:
        self._answer.release() if self._answer.content.at_eof() else self._answer.close()


def _body(request: httpx2.Request) -> bytes | AsyncIterator[bytes] | None:
    try:
        return request.content or None
    except httpx2.RequestNotRead:
        if isinstance(request.stream, httpx2.AsyncByteStream):
            return aiter(request.stream)
        raise


@contextmanager
def _as_httpx() -> Iterator[None]:
    """The errors of aiohttp as those that the SDK and `call_failures` know."""
    try:
        yield
    except aiohttp.NonHttpUrlClientError as error:
        raise httpx2.UnsupportedProtocol(str(error)) from error
    except aiohttp.InvalidURL as error:
        raise httpx2.InvalidURL(str(error)) from error
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx2.ConnectTimeout(str(error)) from error
    except aiohttp.SocketTimeoutError as error:
        raise httpx2.ReadTimeout(str(error)) from error
    except aiohttp.ServerDisconnectedError as error:
        raise httpx2.RemoteProtocolError(str(error)) from error
    except aiohttp.ClientConnectionError as error:
        raise httpx2.ConnectError(str(error)) from error
    except aiohttp.ClientError as error:
        raise httpx2.ReadError(str(error)) from error
