"""HTTP/1.1 as uvicorn's faster parser reads it, with the bound on heads that the parser itself lacks."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from api.errors import PROBLEM_TYPE
from api.joined_writes import JoinedWrites
from api.request_log import REQUEST_ID
from compaction.core import jsonbytes
from compaction.errors import InvalidRequest

MAX_HEAD_BYTES = 64 * 1024  # as uvicorn's other parser has it; ours and those of agents have less than 2 KB


class BoundedProtocol(HttpToolsProtocol):
    """Ends a connection that sends more than MAX_HEAD_BYTES without a request, a body or an end coming of it.

    The parser collects headers, trailers and chunk extensions for as long as they come, before anybody has asked for a
    key: one caller could fill the memory.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._steps = 0  # how often something came of what was sent
        self._idle_bytes = 0  # sent since then

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """A caller has come."""
        self._writes = JoinedWrites(transport, self.loop)
        super().connection_made(self._writes)

    def on_response_complete(self) -> None:
        """An answer is whole: it goes out at once."""
        self._writes.flush()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP gets a problem like any other; the connection ends."""
        request_id = uuid4().hex
        body = jsonbytes.encode(
            {
                "type": "urn:compactd:problem:invalid_request",
                "title": HTTPStatus.BAD_REQUEST.phrase,
                "status": HTTPStatus.BAD_REQUEST.value,
                "code": InvalidRequest.code,
                "detail": msg,
                "request_id": request_id,
            }
        )
        head = (
            f"HTTP/1.1 400 {HTTPStatus.BAD_REQUEST.phrase}\r\ncontent-type: {PROBLEM_TYPE}\r\n"
            f"content-length: {len(body)}\r\n{REQUEST_ID.lower()}: {request_id}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Bytes from the caller."""
        before = self._steps
        super().data_received(data)
        self._idle_bytes = 0 if self._steps != before else self._idle_bytes + len(data)
        if self._idle_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete:
                self.send_400_response("The request's head is too large.")
            else:
                self.transport.close()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._steps += 1
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is whole."""
        self._steps += 1
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of its body."""
        self._steps += 1
        super().on_body(body)

    def on_message_complete(self) -> None:
        """It is whole."""
        self._steps += 1
        super().on_message_complete()
