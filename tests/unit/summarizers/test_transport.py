"""The transport under the SDK: answers come as they arrive, wait in the kernel when asked to, leave nothing open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest

from compaction.summarizers.transport import AiohttpTransport, held_back

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
Say = Callable[[bytes], Awaitable[None]]


class Server:
    """Answers one request word by word, as the test says."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.left = asyncio.Event()
        self.request = b""
        self._writer: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.request = await reader.readuntil(b"\r\n\r\n")
        self._writer = writer
        writer.write(HEAD)
        self.asked.set()
        while await reader.read(65536):
            pass
        self.left.set()
        writer.close()

    async def say(self, words: bytes) -> None:
        assert self._writer is not None
        self._writer.write(b"%x\r\n%s\r\n" % (len(words), words))
        await self._writer.drain()


@asynccontextmanager
async def answering() -> AsyncIterator[tuple[Server, httpx2.AsyncClient, str]]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    transport = AiohttpTransport(max_connections=2, max_idle_seconds=5.0)
    async with listening, httpx2.AsyncClient(transport=transport, timeout=30) as client:
        yield server, client, f"http://127.0.0.1:{port}/"


async def test_what_is_held_back_waits_in_the_kernel_and_comes_in_one_piece() -> None:
    async with answering() as (server, client, url), client.stream("GET", url) as response:
        pieces = response.aiter_bytes()
        await server.say(b"one ")
        assert await anext(pieces) == b"one "
        with held_back(response):
            for word in (b"two ", b"three ", b"four"):
                await server.say(word)
                await asyncio.sleep(0.01)  # the words are packets of their own
            next_piece = asyncio.ensure_future(anext(pieces))
            await asyncio.sleep(0.05)
            assert not next_piece.done()
        assert await next_piece == b"two three four"


async def test_a_body_that_is_left_early_closes_its_connection() -> None:
    async with answering() as (server, client, url):
        async with client.stream("GET", url) as response:
            await server.say(b"more")
            async for _ in response.aiter_bytes():
                break
        await server.left.wait()


async def test_the_host_header_and_a_length_go_out_once() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"12"
        yield b"34"

    async with answering() as (server, client, url):
        async with client.stream("POST", url, content=body(), headers={"content-length": "4"}):
            pass
        names = [line.split(b":")[0].lower() for line in server.request.split(b"\r\n")[1:]]
        assert (names.count(b"host"), names.count(b"content-length"), names.count(b"transfer-encoding")) == (1, 1, 0)


async def test_a_response_of_another_transport_is_not_held_back() -> None:
    with held_back(httpx2.Response(200, content=b"all")):
        pass


@pytest.mark.parametrize(
    ("url", "kind"), [("http://127.0.0.1:1/", httpx2.ConnectError), ("ftp://127.0.0.1/", httpx2.UnsupportedProtocol)]
)
async def test_failures_are_those_that_the_sdk_knows(url: str, kind: type[Exception]) -> None:
    transport = AiohttpTransport(max_connections=1, max_idle_seconds=5.0)
    with pytest.raises(kind):
        await transport.handle_async_request(httpx2.Request("GET", url))
    await transport.aclose()


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering() as (server, client, url):
        monkeypatch.setenv("HTTP_PROXY", url)
        monkeypatch.setenv("NO_PROXY", "")
        async with client.stream("GET", "http://model.invalid/v1") as response:
            assert response.status_code == 200
        assert server.request.startswith(b"GET http://model.invalid/v1 HTTP/1.1\r\n")


async def test_a_server_that_hangs_up_broke_the_protocol() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    listening = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    transport = AiohttpTransport(max_connections=1, max_idle_seconds=5.0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        with pytest.raises(httpx2.RemoteProtocolError):
            await transport.handle_async_request(httpx2.Request("POST", f"http://127.0.0.1:{port}/", content=b"{}"))
        await transport.aclose()
