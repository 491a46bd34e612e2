"""One JSON document as the whole file: a list of messages, or an object that has one."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import BinaryIO

import msgspec

from compaction.core import jsonbytes
from compaction.core.json_values import MAX_BODY_VALUES, holds_more
from compaction.core.jsonbytes import Json
from compaction.errors import InvalidRequest, TooLarge
from compaction.formats.lines import BOM, read_lines, readable
from compaction.formats.transcript import size_of

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024  # DESIGN §8, the default body limit; a document is held in memory, lines are not
HEAD_BYTES = 4096  # enough to see through an indented start
_LIST_START = re.compile(rb"\[\s*(?:[\[{\]]|$)")
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Document:
    """The messages as the bytes they stand as, and the other members of the object around them (none for a list)."""

    messages: tuple[bytes, ...]
    members: dict[str, bytes] = field(default_factory=dict)
    invalid_utf8: bool = False

    def member(self, *names: str) -> Json:
        """The value of the first of `names` that the object has."""
        found = next((self.members[name] for name in names if name in self.members), None)
        return None if found is None else jsonbytes.decode(found)


def document_in(file: BinaryIO) -> Document | None:
    """The document, None when the file is none: it is made of lines, or of something else.

    Raises InvalidRequest when it begins as a list and breaks off, TooLarge above MAX_DOCUMENT_BYTES.
    """
    first = next(read_lines(file), None)
    if first is None:
        return None
    head = first.data or _head(file, first.offset)
    if _LIST_START.match(head):
        return _whole(file, is_list=True)
    if not head.startswith(b"{"):
        return None
    try:
        value = jsonbytes.decode(readable(head)[0])
    except ValueError:
        return _whole(file, is_list=False)
    return _whole(file, is_list=False) if isinstance(value, dict) and isinstance(value.get("messages"), list) else None


def is_conversation(value: Json) -> bool:
    """Whether an object is a whole conversation: one line of a file for fine-tuning."""
    return isinstance(value, dict) and "role" not in value and isinstance(value.get("messages"), list)


def several_conversations(count: int) -> InvalidRequest:
    """The refusal of a file that has `count` conversations, or some and messages beside them."""
    return InvalidRequest(
        f"The file holds a conversation in each of {count} lines, and an import makes one session. Send each line as a"
        " file of its own, with ?session_id= to name its session."
    )


def _head(file: BinaryIO, offset: int) -> bytes:
    """How a first line begins that is too long to be a row: it may still be a document."""
    file.seek(offset)
    return file.read(HEAD_BYTES).strip()


def _whole(file: BinaryIO, *, is_list: bool) -> Document | None:
    if size_of(file) > MAX_DOCUMENT_BYTES:
        if not is_list:
            return None  # a long file of lines whose first one is damaged
        raise TooLarge(
            f"A JSON document may have {MAX_DOCUMENT_BYTES} bytes. Send one message per line (JSONL) instead."
        )
    data, replaced = readable(file.read().removeprefix(BOM))
    if holds_more(data, MAX_BODY_VALUES):
        if not is_list and b"\n{" in data:
            return None  # lines, each with a limit of its own
        raise TooLarge(
            f"A JSON document may hold {MAX_BODY_VALUES} JSON values. Send one message per line (JSONL) instead."
        )
    try:
        members = {} if is_list else _members(data)
        listed = data if is_list else members.pop("messages", b"")
        return Document(tuple(_elements(listed)), members, replaced)
    except ValueError as error:
        if not is_list:
            return None
        raise InvalidRequest(f"The transcript is not whole: {error}.") from None


def _members(data: bytes) -> dict[str, bytes]:
    try:
        return {name: bytes(raw) for name, raw in _MEMBERS.decode(data).items()}
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        jsonbytes.decode(data)  # sees what stands behind the object, which cutting out members does not
        return jsonbytes.members(data)


def _elements(data: bytes) -> list[bytes]:
    try:
        return [bytes(raw) for raw in _ELEMENTS.decode(data)]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        jsonbytes.decode(data)
        return jsonbytes.elements(data)
