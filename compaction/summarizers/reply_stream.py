"""Reads a streamed model reply from raw bytes: server-sent events in, text and usage out. Pure: no I/O, no clock.

The SDK's own event stream costs 16 to 40 µs per delta (facts/performance.md) because it builds typed snapshots. A
summary needs the text, the stop reason and the usage, so we decode just those, straight from the bytes. Nothing is
raised: the reader stops and says why, so that no exception ever holds a piece of a reply.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import MAX_USAGE_TOKENS, Usage

MAX_TEXT_BYTES = 1024 * 1024  # twice what 128,000 tokens of output make; a summary has about 12 KB
MAX_EVENT_BYTES = 4 * 1024 * 1024  # one event; the largest is a block that comes whole
MAX_STREAM_BYTES = 256 * 1024 * 1024  # of the wire, thinking and framing included: 128,000 tokens make about 25 MB

Problem = Literal["error_event", "malformed", "too_large"]


class _Delta(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None
    stop_reason: str | None = None


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(msgspec.Struct, gc=False):
    model: str | None = None
    usage: _Usage | None = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: _Usage | None = None


_EVENT = msgspec.json.Decoder(_Event)


class ReplyReader:
    """Collects one reply. Feed it bytes as they come; look at `problem` and `done` after each."""

    def __init__(self, *, max_text_bytes: int = MAX_TEXT_BYTES) -> None:
        self.stop_reason: str | None = None
        self.model: str | None = None
        self.block_types: list[str] = []
        self.characters = 0  # of text so far
        self.done = False  # the final event has come
        self.problem: Problem | None = None
        self.error_body: Json = None  # of an error event, for the classifier alone
        self._texts: list[str] = []
        self._counts = [0, 0, 0, 0]  # in the order of core.messages.Usage
        self._max_text_bytes = max_text_bytes
        self._text_bytes = 0
        self._wire_bytes = 0
        self._rest = bytearray()  # an event that has not ended yet
        self._scanned = 0  # of _rest, where no end of an event stands

    @property
    def text(self) -> str:
        """The joined text blocks. Halves of a character that came in two deltas are joined, lone halves replaced."""
        text = "".join(self._texts)
        if jsonbytes.has_lone_surrogate(text):
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return text

    @property
    def usage(self) -> Usage:
        """Tokens so far; final once `stop_reason` is known."""
        return Usage(*self._counts)

    @property
    def began(self) -> bool:
        """Whether anything of a message has come."""
        return self.model is not None or bool(self.block_types)

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes of the stream; does nothing after a problem."""
        self._wire_bytes += len(chunk)
        if self._wire_bytes > MAX_STREAM_BYTES:
            self.problem = "too_large"
        usual = not self._rest and chunk.endswith(b"\n\n") and b"\r" not in chunk  # one or more whole events
        for event in (chunk if usual else self._joined(chunk)).split(b"\n\n"):
            if event and self.problem is None:
                self._event(event)

    def take_message(self, body: Json) -> None:
        """Takes a whole message that came as JSON instead of a stream."""
        message = body if isinstance(body, dict) else {}
        if message.get("type") == "error" or "error" in message:
            self.problem, self.error_body = "error_event", body
            return
        if message.get("type") != "message" or not isinstance(message.get("content"), list):
            self.problem = "malformed"
            return
        for block in message["content"]:
            self._lenient({"type": "content_block_start", "content_block": block})
        self._lenient({"type": "message_start", "message": message})
        self._lenient({"type": "message_delta", "delta": {"stop_reason": message.get("stop_reason")}})
        self.done = True

    def _joined(self, chunk: bytes) -> bytes:
        """Whole events out of the kept rest and `chunk`, line ends made one kind; keeps what has not ended."""
        rest = self._rest
        rest += chunk
        if b"\r" in rest:
            held = rest.endswith(b"\r")  # its \n may still come
            plain = bytes(rest[:-1] if held else rest).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            rest = self._rest = bytearray(plain + b"\r" if held else plain)
            self._scanned = 0
        end = rest.rfind(b"\n\n", max(0, self._scanned - 1))
        if end < 0:
            self._scanned = len(rest)
            if len(rest) > MAX_EVENT_BYTES:
                self.problem = "too_large"
            return b""
        whole = bytes(rest[:end])
        del rest[: end + 2]
        self._scanned = 0
        return whole

    def _event(self, event: bytes) -> None:
        head, found, data = event.partition(b"\ndata:")
        if not found or b"\n" in data or not head.startswith(b"event:") or b"\n" in head:
            name, data = _fields(event)
        else:
            name = head[6:].strip()
        if name == b"ping" or not data:
            return
        if name == b"error":
            self._error(data)
            return
        try:
            decoded = _EVENT.decode(data)
        except msgspec.DecodeError:  # the parent of ValidationError
            self._odd(data)
            return
        if decoded.type == "error":
            self._error(data)
        else:
            self._take(decoded)

    def _take(self, event: _Event) -> None:
        kind, delta = event.type, event.delta
        if kind == "content_block_delta":
            if delta is not None and delta.text and delta.type == "text_delta":
                self._append(delta.text)
        elif kind == "content_block_start" and event.content_block is not None:
            self._start(event.content_block)
        elif kind == "message_delta":
            self.stop_reason = (delta.stop_reason if delta is not None else None) or self.stop_reason
            self._count(event.usage)
        elif kind == "message_start" and event.message is not None:
            self.model = event.message.model
            self._count(event.message.usage)
        elif kind == "message_stop":
            self.done = True

    def _start(self, block: _Block) -> None:
        self.block_types.append(block.type)
        if block.type == "text" and block.text:
            self._append(block.text)

    def _append(self, text: str) -> None:
        self._texts.append(text)
        self.characters += len(text)
        self._text_bytes += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        if self._text_bytes > self._max_text_bytes:
            self.problem = "too_large"

    def _count(self, usage: _Usage | None) -> None:
        """Later numbers are cumulative and replace earlier ones; what an event does not name stays."""
        if usage is None:
            return
        newer = (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
        )
        self._counts = [
            old if new is None else min(max(new, 0), MAX_USAGE_TOKENS)
            for new, old in zip(newer, self._counts, strict=True)
        ]

    def _odd(self, data: bytes) -> None:
        """An event that the fast decoder refuses: an error, half a character, a kind we do not know, or rubbish."""
        try:
            body = jsonbytes.decode(data)
        except ValueError:
            self.problem = "malformed"
            return
        if isinstance(body, dict) and body.get("type") == "error":
            self._error(data)
        else:
            self._lenient(body)

    def _lenient(self, body: Json) -> None:
        try:
            self._take(msgspec.convert(body, _Event))
        except msgspec.ValidationError:
            known = isinstance(body, dict) and str(body.get("type")).startswith(("message_", "content_block_"))
            self.problem = "malformed" if known else None

    def _error(self, data: bytes) -> None:
        self.problem = "error_event"
        try:
            self.error_body = jsonbytes.decode(data)
        except ValueError:
            self.error_body = data.strip()


def _fields(event: bytes) -> tuple[bytes, bytes]:
    """The name and the joined data of an event, line by line as the specification of event streams says."""
    name, data = b"", []
    for line in event.split(b"\n"):
        key, _, value = line.partition(b":")
        if key == b"event":
            name = value.strip()
        elif key == b"data":
            data.append(value.removeprefix(b" "))
    return name, b"\n".join(data)


def _bounded(count: int) -> int:
    """A gateway may say anything."""
    return min(max(count, 0), MAX_USAGE_TOKENS)
