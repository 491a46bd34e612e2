"""Callers who wait, as bare sockets: long-polls and event streams that note when their answer was there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ops.bench.api_process import KEY
from ops.embedded.ports import LOOPBACK

WAIT_SECONDS = 300  # longer than the bench
CONNECTS_AT_ONCE = 100  # the kernel's queue of new connections is short on some systems
END_OF_HEAD = b"\r\n\r\n"
LAST_EVENT, END_OF_EVENT = b"event: end\n", b"\n\n"
IS_END = b'"done":true'
READ_LIMIT_BYTES = 2**20  # of one answer

Reading = Callable[[asyncio.StreamReader], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Answered:
    """When a caller had its answer, on the clock of `time.perf_counter`, and whether the answer is the job's end."""

    job_id: str
    at: float
    is_end: bool


class Crowd:
    """Callers on one API process; `answers` are their tasks."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connecting = asyncio.Semaphore(CONNECTS_AT_ONCE)
        self._asked = 0
        self._all_asked = asyncio.Event()
        self._open: list[asyncio.StreamWriter] = []
        self.answers: list[asyncio.Task[Answered]] = []

    def poll(self, job_id: str) -> None:
        """One more caller that long-polls."""
        head = f"GET /v1/compactions/{job_id} HTTP/1.1\r\nPrefer: wait={WAIT_SECONDS}"
        self.answers.append(asyncio.create_task(self._wait(job_id, head, _document)))

    def stream(self, job_id: str) -> None:
        """One more caller that follows the job's events."""
        head = f"GET /v1/compactions/{job_id}/events HTTP/1.1\r\nAccept: text/event-stream"
        self.answers.append(asyncio.create_task(self._wait(job_id, head, _last_event)))

    async def asked(self) -> None:
        """Returns when every caller has sent its request."""
        await self._all_asked.wait()

    async def answered(self) -> list[Answered]:
        """Everybody's answer; then they hang up, and not before: agents keep their connections."""
        done = await asyncio.gather(*self.answers)
        for writer in self._open:
            writer.close()
        return done

    async def _wait(self, job_id: str, head: str, read: Reading) -> Answered:
        async with self._connecting:
            reader, writer = await asyncio.open_connection(LOOPBACK, self._port, limit=READ_LIMIT_BYTES)
        self._open.append(writer)
        writer.write(f"{head}\r\nHost: bench\r\nAuthorization: Bearer {KEY}\r\n\r\n".encode("ascii"))
        await writer.drain()
        self._asked += 1
        if self._asked == len(self.answers):
            self._all_asked.set()
        body = await read(reader)
        return Answered(job_id, time.perf_counter(), IS_END in body)


async def _document(reader: asyncio.StreamReader) -> bytes:
    """The whole body of one answer."""
    head = await reader.readuntil(END_OF_HEAD)
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
    return await reader.readexactly(int(length))


async def _last_event(reader: asyncio.StreamReader) -> bytes:
    """The last event of a stream, when all of it is there."""
    await reader.readuntil(LAST_EVENT)
    return await reader.readuntil(END_OF_EVENT)
