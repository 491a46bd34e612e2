"""The events of a streamed message as bytes, framed as HTTP chunks, in the order of the real API."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from compaction.core import jsonbytes

Ticks = tuple[bytes, ...]  # what goes out together; a paced reply pauses before each but the first

LAST_CHUNK = b"0\r\n\r\n"
_SIGNATURE = "c2lnbmVkLWJ5LXRoZS1mYWtl"


def chunk(data: bytes) -> bytes:
    """One chunk of a body with Transfer-Encoding: chunked."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(name: str, body: Mapping[str, Any]) -> bytes:
    """One framed event; the body gets its `type` from the name."""
    return chunk(b"event: %s\ndata: %s\n\n" % (name.encode(), jsonbytes.encode({"type": name, **body})))


def opening(message: Mapping[str, Any]) -> bytes:
    """message_start."""
    return event("message_start", {"message": message})


def block(index: int, content: Mapping[str, Any], chunks: int) -> Ticks:
    """All events of one content block. The text of a text block comes in `chunks` pieces, one a tick."""
    stop = event("content_block_stop", {"index": index})
    match content.get("type"):
        case "text":
            return (_start(index, {"type": "text", "text": ""}), *_text_deltas(index, content["text"], chunks), stop)
        case "thinking":
            start = _start(index, {"type": "thinking", "thinking": "", "signature": ""})
            thought = _delta(index, {"type": "thinking_delta", "thinking": content["thinking"]})
            signed = _delta(index, {"type": "signature_delta", "signature": content.get("signature", _SIGNATURE)})
            return (start + thought + signed + stop,)
        case "tool_use":
            asked = jsonbytes.encode(content.get("input", {})).decode()
            start = _start(index, {**content, "input": {}})
            return (start + _delta(index, {"type": "input_json_delta", "partial_json": asked}) + stop,)
        case _:
            return (_start(index, content) + stop,)


def ending(stop_reason: str, stop_details: Any, usage: Mapping[str, int]) -> bytes:  # noqa: ANN401 - JSON
    """message_delta and message_stop."""
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    if stop_details is not None:
        delta["stop_details"] = stop_details
    return event("message_delta", {"delta": delta, "usage": usage}) + event("message_stop", {})


def error(body: Mapping[str, Any]) -> bytes:
    """An error event inside a stream that began well."""
    return event("error", {"error": body})


def pieces(text: str, count: int) -> Iterator[str]:
    """`text` in `count` pieces of nearly the same length (fewer when it is shorter)."""
    count = max(1, min(count, len(text)))
    cuts = [len(text) * n // count for n in range(count + 1)]
    return (text[start:stop] for start, stop in itertools.pairwise(cuts))


def _start(index: int, content: Mapping[str, Any]) -> bytes:
    start = event("content_block_start", {"index": index, "content_block": content})
    return start + event("ping", {}) if index == 0 else start


def _delta(index: int, delta: Mapping[str, Any]) -> bytes:
    return event("content_block_delta", {"index": index, "delta": delta})


@lru_cache(maxsize=64)  # a bench asks for the same thousand deltas thousands of times
def _text_deltas(index: int, text: str, chunks: int) -> Ticks:
    return tuple(_delta(index, {"type": "text_delta", "text": piece}) for piece in pieces(text, chunks))
