"""What the fake was asked: one entry per request, in memory and on request as an append-only file of JSON lines."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json

MESSAGES = "/v1/messages"
_TOLD_HEADERS = ("anthropic-version", "anthropic-beta", "content-type", "user-agent")  # never the key


@dataclass(slots=True, kw_only=True)
class Call:
    """One request. `outcome` is open until the reply was sent or the client hung up."""

    index: int
    method: str
    path: str
    at: float  # Unix time, seconds
    headers: dict[str, str]
    sha256: str
    body_bytes: int
    body: bytes | None = None
    facts: dict[str, Any] = field(default_factory=dict)  # model, stream, max_tokens, metadata, input_tokens, answer
    outcome: Literal["open", "sent", "disconnected"] = "open"
    ended_at: float | None = None

    def json(self) -> Json:
        """The decoded body. Raises ValueError where bodies are not kept."""
        if self.body is None:
            raise ValueError("the script says keep_bodies: false")
        return jsonbytes.decode(self.body)

    def as_line(self) -> dict[str, Any]:
        """Everything but the body."""
        told = {name: getattr(self, name) for name in ("index", "method", "path", "at", "headers", "sha256")}
        ended = {"body_bytes": self.body_bytes, "outcome": self.outcome, "ended_at": self.ended_at}
        return told | self.facts | ended


class Ledger:
    """All requests so far."""

    def __init__(self, path: Path | None = None) -> None:
        self.calls: list[Call] = []
        self._file: BinaryIO | None = path.open("ab", buffering=0) if path else None

    @property
    def messages(self) -> list[Call]:
        """The model calls: POST /v1/messages."""
        return [call for call in self.calls if call.path == MESSAGES]

    def begin(self, method: str, path: str, headers: dict[str, str], body: bytes, *, keep_body: bool) -> Call:
        """Notes a request that has come in whole."""
        told = {name: value for name, value in headers.items() if name in _TOLD_HEADERS or name.startswith("x-")}
        told.pop("x-api-key", None)
        call = Call(
            index=len(self.calls) + 1,
            method=method,
            path=path,
            at=time.time(),
            headers=told,
            sha256=hashlib.sha256(body).hexdigest(),
            body_bytes=len(body),
            body=body if keep_body else None,
        )
        self.calls.append(call)
        return call

    def answered(self, call: Call) -> None:
        """The answer is decided and on its way: the line that a crash must not lose."""
        self._write({"event": "call", **call.as_line()})

    def end(self, call: Call, outcome: Literal["sent", "disconnected"]) -> None:
        """The reply has gone, or its reader has."""
        if call.outcome == "open":
            call.outcome, call.ended_at = outcome, time.time()
            self._write({"event": "end", "index": call.index, "outcome": outcome, "ended_at": call.ended_at})

    def clear(self) -> None:
        """Forgets the calls; the file keeps its lines."""
        self.calls = []

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(jsonbytes.encode(line) + b"\n")
