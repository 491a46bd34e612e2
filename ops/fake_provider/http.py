"""HTTP/1.1 by hand on asyncio's transport: hundreds of streams share the machine with what they test.

A stream is a timer that writes the next bytes of its plan; there is no task, no queue and no copy per delta.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ops.fake_provider.plan import Plan

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 512 * 1024 * 1024  # a batch may have 256 MB
WRITE_HIGH_BYTES = 1024 * 1024  # a reader that is further behind than this is waited for


@dataclass(frozen=True, slots=True)
class Request:
    """One request, whole. Header names are in lower case; `path` is without the query."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send, and whom to tell how it ended."""

    plan: Plan
    ended: Callable[[Literal["sent", "disconnected"]], None]


class BadRequest(Exception):
    """The bytes are no HTTP request that this server takes."""


class Connection(asyncio.Protocol):
    """One client. Requests are answered one after the other."""

    def __init__(self, answer: Callable[[Request], Answer], open_connections: set[Connection]) -> None:
        self._answer = answer
        self._open = open_connections
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._head: tuple[str, str, dict[str, str]] | None = None
        self._running: Answer | None = None
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0
        self._due = 0.0
        self._paused = False
        self._held = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: a client is there."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a TCP server gives no other
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES)
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: the client is gone."""
        del exc
        self._open.discard(self)
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        self._end("disconnected")

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes."""
        self._buffer += data
        self._read()

    def pause_writing(self) -> None:
        """asyncio: the client reads too slowly."""
        self._paused = True

    def resume_writing(self) -> None:
        """asyncio: it has caught up."""
        self._paused = False
        if self._running is not None and self._timer is None:
            self._tick()

    def release(self) -> None:
        """Begins the reply that was held, if there is one."""
        if self._held and self._running is not None:
            self._held = False
            self._begin(self._running.plan)

    def hang_up(self) -> None:
        """Drops the client at once."""
        if self._transport is not None:
            self._transport.abort()

    def _read(self) -> None:
        try:
            while self._running is None and self._transport is not None:
                request = self._request()
                if request is None:
                    return
                self._play(self._answer(request))
        except BadRequest:
            self.hang_up()

    def _request(self) -> Request | None:
        if self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > MAX_HEAD_BYTES:
                    raise BadRequest
                return None
            self._head = _parsed_head(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
            if self._head[2].get("expect") == "100-continue" and self._transport is not None:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        method, path, headers = self._head
        body = _chunked(self._buffer) if "chunked" in headers.get("transfer-encoding", "") else self._sized(headers)
        if body is None:
            return None
        self._head = None
        return Request(method, path, headers, body)

    def _sized(self, headers: dict[str, str]) -> bytes | None:
        told = headers.get("content-length", "0")
        size = int(told) if told.isdecimal() else MAX_BODY_BYTES + 1
        if size > MAX_BODY_BYTES:
            raise BadRequest
        if len(self._buffer) < size:
            return None
        body = bytes(self._buffer[:size])
        del self._buffer[:size]
        return body

    def _play(self, answer: Answer) -> None:
        self._running = answer
        self._held = answer.plan.held
        if not self._held:
            self._begin(answer.plan)

    def _begin(self, plan: Plan) -> None:
        self._next = -1  # the head
        self._due = self._loop.time() + plan.delay_s
        if plan.delay_s > 0:
            self._timer = self._loop.call_at(self._due, self._tick)
        else:
            self._tick()

    def _tick(self) -> None:
        self._timer = None
        if self._running is None or self._transport is None or self._paused or self._held:
            return
        plan = self._running.plan
        if plan.pause_s <= 0 or not plan.ticks:
            self._transport.write(plan.head + b"".join(plan.ticks) + plan.tail)
            self._finish(plan)
            return
        if self._next < 0:
            self._transport.write(plan.head)
        elif self._next < len(plan.ticks):
            self._transport.write(plan.ticks[self._next])
        else:
            self._transport.write(plan.tail)
            self._finish(plan)
            return
        self._next += 1
        self._due += plan.pause_s if self._next < len(plan.ticks) else 0.0  # the tail follows the last tick at once
        self._timer = self._loop.call_at(self._due, self._tick)

    def _finish(self, plan: Plan) -> None:
        self._end("sent")
        if plan.ending == "close" and self._transport is not None:
            self._transport.close()
        elif self._buffer:
            self._loop.call_soon(self._read)

    def _end(self, outcome: Literal["sent", "disconnected"]) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.ended(outcome)


def _parsed_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):  # noqa: PLR2004 - method, target, version
        raise BadRequest
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest
        headers[name.strip().lower()] = value.strip()
    return parts[0], parts[1].partition("?")[0], headers


def _chunked(buffer: bytearray) -> bytes | None:
    """The body when its last chunk is there; it leaves the buffer then, and not before."""
    body, at = bytearray(), 0
    while True:
        line_end = buffer.find(b"\r\n", at)
        if line_end < 0:
            return None
        try:
            size = int(bytes(buffer[at:line_end]).partition(b";")[0], 16)
        except ValueError:
            raise BadRequest from None
        at = line_end + 2
        if len(buffer) < at + size + 2 or len(body) + size > MAX_BODY_BYTES:
            return None
        body += buffer[at : at + size]
        at += size + 2
        if size == 0:
            del buffer[:at]
            return bytes(body)
