"""A receiver of HTTP hooks on loopback: keeps each request and answers with the very bytes that a test gives it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Received:
    """One request, whole. Header names are in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        """The body, decoded."""
        return json.loads(self.body)


@dataclass
class Receiver:
    """Answers each request with `pieces` and closes; or stays silent until the caller leaves; or resets."""

    pieces: Sequence[bytes] = ()
    silent: bool = False
    resets: bool = False
    port: int = 0
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    hung_up: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.received.append(Received(head[0], headers, body))
            for piece in self.pieces:
                writer.write(piece)
                await writer.drain()
            if self.silent:
                await reader.read()
        self.hung_up.set()
        if self.resets:
            await asyncio.sleep(0.05)  # the caller reads the pieces first
            never_linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, never_linger)
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


def answer(body: bytes | str | dict[str, Any], *, status: str = "200 OK", headers: str = "") -> Sequence[bytes]:
    """An HTTP answer in one piece."""
    content = json.dumps(body).encode() if isinstance(body, dict) else body.encode() if isinstance(body, str) else body
    return [f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n{headers}\r\n".encode() + content]


@asynccontextmanager
async def receiving(
    pieces: Sequence[bytes] = (), *, silent: bool = False, resets: bool = False, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    """A receiver on a free port of 127.0.0.1."""
    receiver = Receiver(pieces, silent, resets)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.gather(*receiver.tasks)
