"""One row of a Claude Code session log: decoded from its line, and the few facts of it that stay in memory.

The fast way is one msgspec pass that leaves the content as the bytes it stands as. What that refuses (half
characters, NaN, fields of another type than Claude Code writes) goes through the standard library, field by field.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import msgspec

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import MAX_UUID_CHARS, Usage
from compaction.formats.content import ContentFacts, content_facts
from compaction.formats.identity import short_digest

CONVERSATION = frozenset({"user", "assistant"})
COMPACT = "system:compact_boundary"
MICROCOMPACT = "system:microcompact_boundary"
SYNTHETIC_MODEL = "<synthetic>"  # what Claude Code writes as the model of answers that it made itself
MAX_TOKENS = 1_000_000_000  # a thousand times the largest window; a column of 32 bits takes it
MAX_KIND_CHARS = 60  # the longest real one has 28; a longer one is content in disguise
ROW_START = re.compile(
    r'\{"(?:parentUuid|logicalParentUuid|sessionId|uuid|isSidechain|type":"(?:user|assistant|system)")'
)
_NAME = re.compile(rf"[\x21-\x7e]{{1,{MAX_UUID_CHARS}}}")
_KIND = re.compile(r"[A-Za-z0-9_.-]+(?::[A-Za-z0-9_.-]+)?")
_EMPTY = msgspec.Raw(b"")


class RawUsage(msgspec.Struct, gc=False):
    """`message.usage` as far as we read it."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class RawMessage(msgspec.Struct):
    """`message` of a user or assistant row; `content` stays as it stands in the file."""

    content: msgspec.Raw = _EMPTY
    id: str | None = None
    model: str | None = None
    usage: RawUsage | None = None


class RawRow(msgspec.Struct, rename="camel"):
    """A row as Claude Code writes it; what we do not read is stepped over."""

    type: str = ""
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | msgspec.UnsetType | None = msgspec.UNSET
    logical_parent_uuid: str | None = None
    source_tool_assistant_uuid: str | None = msgspec.field(default=None, name="sourceToolAssistantUUID")
    session_id: str | None = None
    agent_id: str | None = None
    timestamp: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    message: RawMessage | None = None
    content: msgspec.Raw = _EMPTY  # the line of text of a system row
    compact_metadata: dict[str, Any] | None = None
    microcompact_metadata: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """The type, for system rows with the subtype: user, system:compact_boundary."""
        kind = f"{self.type}:{self.subtype}" if self.type == "system" and self.subtype else self.type
        return kind if len(kind) <= MAX_KIND_CHARS and _KIND.fullmatch(kind) else "unknown"


class Row(msgspec.Struct, frozen=True, gc=False):
    """What the first pass remembers of a row. `offset` and `length` are the bytes of its object in the file."""

    line: int
    offset: int
    length: int
    kind: str
    uuid: str
    parent_uuid: str | None = None
    unlinked: bool = False  # the row does not say what its parent is, so it follows the row before it
    logical_parent_uuid: str | None = None
    source_uuid: str | None = None  # of a tool result: the assistant row that made the call
    message_id: str | None = None
    is_sidechain: bool = False
    is_meta: bool = False
    is_compact_summary: bool | None = None  # None: the row does not say, as the logs of old versions
    is_synthetic: bool = False
    model: str | None = None
    usage: Usage | None = None
    content: ContentFacts | None = None  # None where the row is no message or its content is not usable

    @property
    def in_conversation(self) -> bool:
        """Whether it is a user or assistant row."""
        return self.kind in CONVERSATION

    @property
    def is_stored(self) -> bool:
        """Whether it becomes a message when it is on the branch."""
        return self.in_conversation and not self.is_synthetic and self.content is not None


S = TypeVar("S", bound=msgspec.Struct)
_DECODER = msgspec.json.Decoder(RawRow)
_INNER: dict[str, type[msgspec.Struct]] = {"message": RawMessage, "usage": RawUsage}


def decode_row(data: bytes) -> RawRow | None:
    """The row in `data` (valid UTF-8); None when it is not one JSON object or is nested too deep."""
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _decode_leniently(data)


def _decode_leniently(data: bytes) -> RawRow | None:
    try:
        value = jsonbytes.decode(data)
        return _fitting(RawRow, value, data) if isinstance(value, dict) else None
    except ValueError:
        return None


def _fitting(struct: type[S], value: dict[str, Json], data: bytes) -> S:
    """A struct of the members that have the right type. Raises ValueError when `data` cannot be cut into members."""
    parts = jsonbytes.members(data)
    kept: dict[str, object] = {}
    for field in _fields(struct):
        member = value.get(field.encode_name, msgspec.UNSET)
        inner = _INNER.get(field.name)
        if field.type is msgspec.Raw and field.encode_name in parts:
            kept[field.name] = msgspec.Raw(parts[field.encode_name])
        elif inner is not None and isinstance(member, dict):
            kept[field.name] = _fitting(inner, member, parts[field.encode_name])
        elif member is not msgspec.UNSET:
            with suppress(msgspec.ValidationError):
                kept[field.name] = msgspec.convert(member, field.type)
    return struct(**kept)


@cache  # msgspec reads the annotations anew on each call, which costs more than the row
def _fields(struct: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(struct)


def name(text: object) -> str | None:
    """`text` where a message's envelope takes it as a name: 1 to 200 printable ASCII characters without spaces."""
    return text if isinstance(text, str) and _NAME.fullmatch(text) else None


def reference(text: object) -> str | None:
    """`text` as a name that rows refer to each other by; what no envelope takes becomes a digest."""
    if not isinstance(text, str) or not text:
        return None
    if not _NAME.fullmatch(text):
        text = "id-" + short_digest([text.encode("utf-8", "surrogatepass")])
    return sys.intern(text)  # a uuid stands in the row and in its children: once in memory


def usage(raw: RawRow) -> Usage | None:
    """The four token counts of an assistant row; those that are missing or cannot be true count as 0."""
    numbers = raw.message.usage if raw.message is not None and raw.type == "assistant" else None
    if numbers is None:
        return None
    counts = msgspec.structs.astuple(numbers)
    return Usage(*(count if count is not None and 0 <= count <= MAX_TOKENS else 0 for count in counts))


def is_synthetic(raw: RawRow) -> bool:
    """Whether an assistant row was made by Claude Code itself: an error notice that no model ever said."""
    model = raw.message.model if raw.message is not None else None
    return raw.type == "assistant" and (raw.is_api_error_message is True or model == SYNTHETIC_MODEL)


def row_facts(raw: RawRow, *, line: int, offset: int, length: int, uuid: str) -> Row:
    """What stays in memory of `raw`, under `uuid` (its own or a derived one)."""
    kind = sys.intern(raw.kind)
    message = raw.message if kind in CONVERSATION else None
    return Row(
        line=line,
        offset=offset,
        length=length,
        kind=kind,
        uuid=uuid,
        parent_uuid=reference(raw.parent_uuid),
        unlinked=raw.parent_uuid is msgspec.UNSET,
        logical_parent_uuid=reference(raw.logical_parent_uuid),
        source_uuid=reference(raw.source_tool_assistant_uuid),
        message_id=reference(message.id) if message is not None and kind == "assistant" else None,
        is_sidechain=raw.is_sidechain is True,
        is_meta=raw.is_meta is True,
        is_compact_summary=raw.is_compact_summary,
        is_synthetic=is_synthetic(raw),
        model=sys.intern(name(message.model) or "") or None if message is not None else None,
        usage=usage(raw),
        content=content_facts(bytes(message.content)) if message is not None and message.content else None,
    )
