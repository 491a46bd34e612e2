"""A wire between a process and a server that a test can cut, block, or cut at the very moment it chooses.

Only bytes are looked at: a trap waits for a needle in what the client sends. For Postgres a needle is a value of the
statement (statements are prepared, so their words cross the wire once), for the model's API a word of the prompt.
"""

from __future__ import annotations

import asyncio
import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

LOOPBACK = "127.0.0.1"
CHUNK_BYTES = 256 * 1024
KEPT_BYTES = 64 * 1024  # of what a client said since the last answer: a statement with a packed result is smaller
START_SECONDS = 10.0

When = Literal["before", "after"]  # before the bytes reach the server, or when its answer is there, which is kept back


@dataclass(slots=True)
class Trap:
    """Springs when a client's bytes match; `act` runs on the wires' loop, with the link that sprang it.

    `repeats` springs every time, any other trap once. "before": what matched is not sent on if `act` cuts the link.
    "after": the server has done its work, and its answer is lost, unless `act` returns False.
    """

    needle: re.Pattern[bytes]
    act: Callable[[Link], object]
    when: When = "before"
    repeats: bool = False
    sprung: threading.Event = field(default_factory=threading.Event)


class Link:
    """One connection through a proxy."""

    def __init__(self, proxy: Proxy, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._ends = (client, server)
        self.said = b""  # by the client, since the server's last answer
        self.is_busy = False  # the client waits for an answer
        self.answered_at = -math.inf  # when the last answer was complete
        self.is_cut = False
        self.trap: Trap | None = None  # of the kind that waits for the answer

    def cut(self) -> None:
        """Resets both ends at once."""
        self.is_cut = True
        for end in self._ends:
            end.transport.abort()

    async def upwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Client to server."""
        while data := await source.read(CHUNK_BYTES):
            self.said = (self.said + data)[-KEPT_BYTES:]
            self.is_busy = True
            await self._proxy.opened()
            self._spring()
            if self.is_cut:
                return
            sink.write(data)
            await sink.drain()

    async def downwards(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Server to client."""
        while data := await source.read(CHUNK_BYTES):
            await self._proxy.opened()
            if self.trap is not None:
                trap, self.trap = self.trap, None
                if self._done(trap) is not False:
                    self.cut()
            if self.is_cut:
                return
            self.said = b""
            if self._proxy.is_last(data):
                self.is_busy, self.answered_at = False, time.monotonic()
            sink.write(data)
            await sink.drain()

    def _spring(self) -> None:
        for trap in self._proxy.traps:
            if trap.needle.search(self.said):
                if not trap.repeats:
                    self._proxy.traps.remove(trap)
                if trap.when == "after":
                    self.trap = trap
                else:
                    self._done(trap)
                return

    def _done(self, trap: Trap) -> object:
        answer = trap.act(self)
        trap.sprung.set()
        return answer


class Proxy:
    """Listens on a port of its own and passes everything on to `port`. Call it from any thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, port: int, is_last: Callable[[bytes], bool], unread_seconds: float
    ) -> None:
        self.is_last = is_last  # whether these bytes of the server complete an answer
        self._unread_seconds = unread_seconds  # for so long the client may leave a complete answer in the kernel
        self.port = 0
        self.traps: list[Trap] = []
        self._loop = loop
        self._target = port
        self._links: set[Link] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._server: asyncio.Server | None = None

    @property
    def busy_links(self) -> int:
        """Connections whose client waits for an answer, or may not have read it yet."""
        read = time.monotonic() - self._unread_seconds
        return sum(link.is_busy or link.answered_at > read for link in list(self._links))

    def set_trap(
        self, needle: bytes, act: Callable[[Link], object], *, when: When = "before", repeats: bool = False
    ) -> Trap:
        """Waits for a regular expression in what clients send; see `Trap`."""
        trap = Trap(re.compile(needle, re.DOTALL), act, when, repeats=repeats)
        self._soon(lambda: self.traps.append(trap))
        return trap

    def remove_trap(self, trap: Trap) -> None:
        """Gives up waiting."""
        self._soon(lambda: self._remove(trap))

    def cut(self) -> None:
        """Resets every connection; new ones may come."""
        self._soon(self._cut)

    def block(self) -> None:
        """Half-open: connections stay, new ones are taken, and nothing goes through."""
        self._soon(self._open.clear)

    def unblock(self) -> None:
        """What waited goes on."""
        self._soon(self._open.set)

    async def opened(self) -> None:
        """Waits while the wire is blocked."""
        await self._open.wait()

    async def start(self) -> None:
        """Binds a free port; called on the loop."""
        self._server = await asyncio.start_server(self._serve, LOOPBACK, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Frees the port and cuts every connection."""
        if self._server is not None:
            self._server.close()
        self._open.set()
        self._cut()

    def _soon(self, act: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(act)

    def _remove(self, trap: Trap) -> None:
        if trap in self.traps:
            self.traps.remove(trap)

    def _cut(self) -> None:
        for link in list(self._links):
            link.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.opened()
        try:
            answers, server = await asyncio.open_connection(LOOPBACK, self._target)
        except OSError:
            writer.transport.abort()
            return
        link = Link(self, writer, server)
        self._links.add(link)
        pumps = [
            asyncio.ensure_future(link.upwards(reader, server)),
            asyncio.ensure_future(link.downwards(answers, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self._links.discard(link)
            writer.close()
            server.close()


class Wires:
    """The thread in which proxies live: `with Wires() as wires: proxy = wires.proxy(5432)`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._turn, name="wires", daemon=True)
        self._proxies: list[Proxy] = []

    def proxy(self, port: int, *, is_last: Callable[[bytes], bool] = bool, unread_seconds: float = 0.0) -> Proxy:
        """A new wire to a port of this machine; by default every answer comes in one piece and is read at once."""
        made = Proxy(self._loop, port, is_last, unread_seconds)
        asyncio.run_coroutine_threadsafe(made.start(), self._loop).result(START_SECONDS)
        self._proxies.append(made)
        return made

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(START_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _stop(self) -> None:
        for proxy in self._proxies:
            await proxy.stop()
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others, timeout=START_SECONDS / 2)
