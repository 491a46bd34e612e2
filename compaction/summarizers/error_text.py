"""What a failed reply says, as one bounded line of lower-case text, however many proxies wrapped it.

Gateways put the provider's error into a string inside their own JSON, log lines around it and hard line breaks into it.
We read all of that as text, because the wording is the only thing that survives. Bodies are hostile: every walk and
length has a limit, and members that echo our own request are never looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json

MAX_TEXT_CHARS = 20_000  # an error message has a few hundred; the rest is a log or an attack
HEAD_CHARS = 12_000  # of a longer text the beginning and the end are read: wrappers put the cause at either side
MAX_NODES = 1_000  # values of one body; the largest real one seen has about 40
MAX_DEPTH = 8  # a string that holds JSON counts as one level; three wrappers make four

_ECHOES = frozenset(  # where validators and proxies repeat the request; a transcript may quote any error text
    {"input", "inputs", "messages", "prompt", "system", "tools", "request", "request_body", "ctx", "headers", "url"}
)
_BACKSLASHES = re.compile(r"\\+")  # each wrapper doubles them, so runs are made one before escapes are read
_ESCAPES = (  # what JSON inside text and HTML leave behind; Go writes > as \u003e
    ("\\u003e", ">"),
    ("&gt;", ">"),
    ("\\u0060", "`"),
    ("\\n", " "),
    ("\\r", " "),
    ("\\t", " "),
    ("\\", ""),
)
_SPACES = re.compile(r"\s+")


def flatten(body: Json | str | bytes | None, text: str | None = None) -> str:
    """Everything readable in `body` and `text`: strings as they are, named scalars as `name=value`, joined by ` | `."""
    found: list[str] = []
    room = MAX_TEXT_CHARS
    for part in _parts(body, text):
        found.append(part[:room])
        room -= len(found[-1]) + 3
        if room <= 0:
            break
    joined = _BACKSLASHES.sub("\\\\", " | ".join(found))
    for escape, plain in _ESCAPES:
        joined = joined.replace(escape, plain)
    return _SPACES.sub(" ", joined).lower()


def _parts(body: Json | str | bytes | None, text: str | None) -> Iterator[str]:
    waiting: list[tuple[str, Json, int]] = [("", text, 0), ("", body, 0)]
    for _ in range(MAX_NODES):
        if not waiting:
            return
        name, value, depth = waiting.pop()
        if isinstance(value, bytes | bytearray | memoryview):
            value = _bounded_bytes(bytes(value)).decode("utf-8", "replace")
        if isinstance(value, str):
            value = _bounded(value)
            inner = _inner(value) if depth < MAX_DEPTH else None
            if inner is None:
                yield f"{name}={value}" if name else value
                continue
            value = inner
        if isinstance(value, Mapping | list):
            if depth < MAX_DEPTH:
                waiting.extend(reversed(_members(value, depth + 1)))
        elif value is not None:
            yield f"{name}={str(value)[:40]}"


def _members(value: Mapping[str, Json] | list[Json], depth: int) -> list[tuple[str, Json, int]]:
    if isinstance(value, list):
        return [("", item, depth) for item in value[:MAX_NODES]]
    pairs = list(value.items())[:MAX_NODES]
    return [(str(key)[:40], item, depth) for key, item in pairs if str(key).lower() not in _ECHOES]


def _inner(value: str) -> Json:
    """The JSON that a string holds, or None when it is plain text."""
    if not value.lstrip().startswith(("{", "[")):
        return None
    try:
        inner = jsonbytes.decode(value.strip().encode("utf-8", "replace"))
    except ValueError:
        return None
    return inner if isinstance(inner, dict | list) else None


def _bounded(value: str) -> str:
    if len(value) <= MAX_TEXT_CHARS:
        return value
    return value[:HEAD_CHARS] + " " + value[HEAD_CHARS - MAX_TEXT_CHARS :]


def _bounded_bytes(value: bytes) -> bytes:
    limit = MAX_TEXT_CHARS * 4  # UTF-8 has up to four bytes a character
    return value if len(value) <= limit else value[: limit // 2] + b" " + value[-limit // 2 :]
