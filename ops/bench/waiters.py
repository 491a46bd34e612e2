"""Callers who wait, as bare sockets: long-polls and event streams that note when their answer was there.

Two thousand of them share one process with the clock, so they do next to nothing when bytes come.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from ops.bench.api_process import KEY
from ops.embedded.ports import LOOPBACK

WAIT_SECONDS = 300  # longer than the bench
CONNECTS_AT_ONCE = 100  # the kernel's queue of new connections is short on some systems
IS_END = b'"done":true'
LAST_EVENT, END_OF_EVENT = b"event: end\n", b"\n\n"
END_OF_HEAD, END_OF_DOCUMENT = b"\r\n\r\n", b"}"

Whole = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class Answered:
    """When a caller had its answer, on the clock of `time.perf_counter`, and whether the answer is the job's end."""

    job_id: str
    at: float
    is_end: bool


class Caller(asyncio.Protocol):
    """One connection: it asks, and `done` is when its whole answer came."""

    def __init__(self, request: bytes, whole: Whole) -> None:
        self._request = request
        self._whole = whole
        self._received = b""
        self.done: asyncio.Future[tuple[float, bytes]] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the request."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - TCP
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Notes the time when the answer is whole."""
        at = time.perf_counter()
        self._received += data
        if not self.done.done() and self._whole(self._received):
            self.done.set_result((at, self._received))

    def connection_lost(self, exc: Exception | None) -> None:
        """An answer that breaks off is none."""
        del exc
        if not self.done.done():
            self.done.set_result((time.perf_counter(), b""))


class Crowd:
    """Callers on one API process."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connecting = asyncio.Semaphore(CONNECTS_AT_ONCE)
        self._callers: list[asyncio.Task[tuple[str, Caller]]] = []

    def poll(self, job_id: str) -> None:
        """One more caller that long-polls."""
        head = f"GET /v1/compactions/{job_id} HTTP/1.1\r\nPrefer: wait={WAIT_SECONDS}"
        self._callers.append(asyncio.create_task(self._call(job_id, head, _is_document)))

    def stream(self, job_id: str) -> None:
        """One more caller that follows the job's events."""
        head = f"GET /v1/compactions/{job_id}/events HTTP/1.1\r\nAccept: text/event-stream"
        self._callers.append(asyncio.create_task(self._call(job_id, head, _has_last_event)))

    async def asked(self) -> None:
        """Returns when every caller has sent its request."""
        await asyncio.gather(*self._callers)

    async def answered(self) -> list[Answered]:
        """Everybody's answer; then they hang up, and not before: agents keep their connections."""
        callers = await asyncio.gather(*self._callers)
        found = [(job_id, *await caller.done) for job_id, caller in callers]
        for _, caller in callers:
            caller.transport.close()
        return [Answered(job_id, at, IS_END in received) for job_id, at, received in found]

    async def _call(self, job_id: str, head: str, whole: Whole) -> tuple[str, Caller]:
        request = f"{head}\r\nHost: bench\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode("ascii")
        async with self._connecting:
            loop = asyncio.get_running_loop()
            _, caller = await loop.create_connection(lambda: Caller(request, whole), LOOPBACK, self._port)
        return job_id, caller


def _is_document(received: bytes) -> bool:
    """A head and a JSON document behind it."""
    return END_OF_HEAD in received and received.endswith(END_OF_DOCUMENT)


def _has_last_event(received: bytes) -> bool:
    """The last event of a stream, with its end."""
    return END_OF_EVENT in received.partition(LAST_EVENT)[2]
