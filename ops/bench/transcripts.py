"""Sessions for benches: the sample session's log, cut and filled to a number of messages and bytes."""

from __future__ import annotations

import io
from typing import Any

from compaction import formats
from compaction.cli.sample import sample_session
from compaction.core import jsonbytes

Body = dict[str, Any]  # one message with its envelope, decoded


def transcript(seed: int, *, messages: int, size_bytes: int) -> list[bytes]:
    """`messages` bodies of `size_bytes` together (within a percent), calls and results in pairs, ids of their own.

    The same seed gives the same bytes. Long sessions repeat the log, with other ids each time.
    """
    bodies = _rounds(seed, messages)
    for _ in range(4):  # each pass comes ten times closer
        encoded = [jsonbytes.encode(body) for body in bodies]
        missing = size_bytes - sum(map(len, encoded))
        if abs(missing) <= size_bytes // 100:
            break
        _resize(bodies, missing)
    return [jsonbytes.encode(body) for body in bodies]


def _rounds(seed: int, messages: int) -> list[Body]:
    """The wanted number of messages: copies of the log, each with ids of its own, cut where no call is open."""
    found: list[Body] = []
    copy = 0
    while len(found) < messages:
        found += _log(f"{seed}.{copy}", seed)
        copy += 1
    found = found[:messages]
    if found[-1]["role"] == "assistant":  # its call would stay open
        found[-1] = {"uuid": f"end-{seed}", "role": "user", "content": "Thank you, that is all for today."}
    return found


def _log(mark: str, seed: int) -> list[Body]:
    """The sample session as decoded messages; uuids and call ids carry `mark`."""
    read = formats.read(io.BytesIO(b"".join(sample_session(seed))))
    decoded = [jsonbytes.decode(body) for body in read.bodies()]
    return [_marked(body, mark) for body in decoded]


def _marked(body: Body, mark: str) -> Body:
    marked = {name: f"{value}-{mark}" if name in _NAMES else value for name, value in body.items()}
    if isinstance(body["content"], list):
        marked["content"] = [
            {name: f"{value}-{mark}" if name in _CALL_NAMES else value for name, value in block.items()}
            for block in body["content"]
        ]
    return marked


_NAMES = frozenset({"uuid", "parent_uuid", "api_message_id"})
_CALL_NAMES = frozenset({"id", "tool_use_id"})


def _resize(bodies: list[Body], missing_bytes: int) -> None:
    """Repeats or cuts the text of every result in proportion, so that about `missing_bytes` come to it."""
    results = [block for body in bodies if isinstance(body["content"], list) for block in body["content"]]
    results = [block for block in results if block["type"] == "tool_result" and isinstance(block["content"], str)]
    whole = sum(len(block["content"]) for block in results)
    for block in results:
        text = block["content"]
        wanted = max(1, len(text) + missing_bytes * len(text) // whole)
        block["content"] = (text * (wanted // len(text) + 1))[:wanted]
