"""A request's bytes on their way out: sent in pieces, counted once, and let go of as soon as they are sent.

Hundreds of calls wait for their model at once. The SDK keeps what it was given until the reply ends; a generator that
drops its bytes leaves nothing to keep.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable

import msgspec

from compaction.core import jsonbytes

PIECE_BYTES = 256 * 1024  # large enough that a summary's request is one or two writes

_STREAMS = re.compile(rb'\{"model":"[^"\\]*","max_tokens":[0-9]+,"stream":true[,}]')  # how `core.wire` begins a body
_NOT_COUNTED = frozenset(  # what /v1/messages takes and /v1/messages/count_tokens refuses as an extra input
    {"max_tokens", "stream", "metadata", "stop_sequences", "service_tier", "container", "inference_geo"}
)


class Upload:
    """One body, to be sent once. `size` stays known after it has gone."""

    def __init__(self, body: bytes) -> None:
        self.size = len(body)
        self._body: bytes | None = body

    async def pieces(self, sent: Callable[[], object], done: Callable[[], object]) -> AsyncIterator[bytes]:
        """The body piece by piece; `sent` is called when one has gone out, `done` when all have.

        The last piece takes the body with it.
        """
        body, self._body = self._body or b"", None
        for start in range(0, len(body), PIECE_BYTES):
            piece = body[start : start + PIECE_BYTES] if len(body) > PIECE_BYTES else body
            yield piece
            sent()
        done()


def streaming(body: bytes) -> bytes:
    """The body with `"stream": true`; unchanged when it says so already."""
    if _STREAMS.match(body):
        return body
    members = _members(body)
    if members.get("stream") == b"true":
        return body
    members["stream"] = b"true"
    return _object(members)


def counting(body: bytes) -> bytes:
    """The same prompt as a body for count_tokens."""
    return _object({name: value for name, value in _members(body).items() if name not in _NOT_COUNTED})


def _members(body: bytes) -> dict[str, bytes]:
    try:
        return {name: bytes(value) for name, value in msgspec.json.decode(body, type=dict[str, msgspec.Raw]).items()}
    except (msgspec.DecodeError, RecursionError):
        return jsonbytes.members(body)


def _object(members: dict[str, bytes]) -> bytes:
    return b"{" + b",".join(jsonbytes.encode(name) + b":" + value for name, value in members.items()) + b"}"
