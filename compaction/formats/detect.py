"""Which format a transcript file has, told by its first objects."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import BinaryIO, Literal

from compaction.core.jsonbytes import Json
from compaction.errors import InvalidRequest
from compaction.formats import anthropic_messages, claude_code
from compaction.formats.document import document_in
from compaction.formats.objects import ObjectReader
from compaction.formats.plain import decode_object
from compaction.formats.rows import ROW_START

Format = Literal["claude_code", "anthropic_messages", "openai_chat"]

PROBED_OBJECTS = 200  # a log can begin with a hundred snapshots; the first message tells
KNOWN = (claude_code.FORMAT, anthropic_messages.FORMAT)
_CLAUDE_TYPES = frozenset(
    {"summary", "system", "progress", "attachment", "file-history-snapshot", "queue-operation", "pr-link"}
)
_OPENAI_ROLES = frozenset({"tool", "function", "developer"})


def detect(file: BinaryIO) -> str:
    """The format's name, one of KNOWN. Raises InvalidRequest, naming the formats we know, for any other file."""
    document = document_in(file)
    if document is not None:
        head = [decode_object(data) for data in document.messages[:PROBED_OBJECTS]]
        found = {_shape(value) for value in head if value is not None} - {claude_code.FORMAT}
    else:
        found = {_shape(value) for value in _head(file)}
    for name in (claude_code.FORMAT, "openai_chat", anthropic_messages.FORMAT):
        if name in found:
            return _known(name)
    raise InvalidRequest(f"The transcript's format is unknown. Known formats: {', '.join(KNOWN)}.")


def _known(name: str) -> str:
    if name not in KNOWN:
        raise InvalidRequest(
            f"The transcript's format is {name}, which cannot be imported. Known formats: {', '.join(KNOWN)}."
        )
    return name


def _head(file: BinaryIO) -> Iterable[dict[str, Json]]:
    reader = ObjectReader(decode_object, restart=ROW_START)
    return [found.value for found in islice(reader.read(file), PROBED_OBJECTS)]


def _shape(value: dict[str, Json]) -> Format | None:
    """What one object looks like."""
    if "role" in value:
        return _message_shape(value)
    kind = value.get("type")
    if not isinstance(kind, str):
        return None
    if kind in {"user", "assistant"} and isinstance(value.get("message"), dict):
        return "claude_code"
    return "claude_code" if kind in _CLAUDE_TYPES and _is_row(value) else None


def _is_row(value: dict[str, Json]) -> bool:
    return any(key in value for key in ("uuid", "sessionId", "leafUuid", "snapshot"))


def _message_shape(value: dict[str, Json]) -> Format | None:
    role = value["role"]
    if not isinstance(role, str):
        return None
    if role in _OPENAI_ROLES or "tool_calls" in value or "function_call" in value:
        return "openai_chat"
    if role == "system" and "metadata" not in value:
        return "openai_chat"  # the Messages API has its system prompt beside the messages
    if role not in {"user", "assistant", "system"} or not isinstance(value.get("content"), str | list):
        return None
    return "anthropic_messages"
