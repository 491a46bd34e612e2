"""A transport that sends an answer's head and body in one system call.

uvicorn writes them one after the other, and a system call is the dearest part of a small answer: of two thousand
callers who are answered together, each waits for all the calls before his own.
"""

from __future__ import annotations

import asyncio
from typing import Any

MAX_HELD_BYTES = 64 * 1024  # a write of more costs more to copy than a second system call


class JoinedWrites(asyncio.Transport):
    """Holds what is written until `flush`, until it is too much, or until the loop's next turn."""

    def __init__(self, inner: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._inner = inner
        self._loop = loop
        self._held: list[bytes | bytearray | memoryview] = []
        self._held_bytes = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends `data` soon, behind what is held."""
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes > MAX_HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Sends what is held."""
        if self._held:
            joined = self._held[0] if len(self._held) == 1 else b"".join(self._held)
            self._held, self._held_bytes = [], 0
            self._inner.write(joined)

    def close(self) -> None:
        """Closes when everything is sent."""
        self.flush()
        self._inner.close()

    def abort(self) -> None:
        """Closes at once."""
        self._held, self._held_bytes = [], 0
        self._inner.abort()

    def is_closing(self) -> bool:
        """Whether it is closed or about to be."""
        return self._inner.is_closing()

    def pause_reading(self) -> None:
        """No more is read until `resume_reading`."""
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        """Reads again."""
        self._inner.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Another protocol gets what comes."""
        self._inner.set_protocol(protocol)

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - asyncio's signature
        """What is known of the connection."""
        return self._inner.get_extra_info(name, default)
