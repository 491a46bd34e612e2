"""A message: role and content as the Messages API knows them, with the envelope of DESIGN §8 around it.

A body is the JSON object as the producer sent it; `decode_message` reads it and `encode_message` writes one of our own.
Content stays as it came (a string or a list of plain dicts): unknown block types pass through unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from compaction.core import characters, jsonbytes
from compaction.core.jsonbytes import Json

Role = Literal["user", "assistant", "system"]
Block = dict[str, Any]  # one content block, {"type": …, …}; kept as plain data because the API's types grow
Content = str | list[Block]

ROLES = frozenset({"user", "assistant", "system"})
MAX_UUID_CHARS = 200  # like session ids; Claude Code's are 36
MAX_NESTING = 400  # levels of objects and arrays; Python's encoders give up near 1,000, real sessions have 7
MAX_USAGE_TOKENS = 10**12  # a million full windows; the sum of some fits into 64 bits
BOUNDARY_KIND = "compact_boundary"  # metadata.kind of the marker message where a compaction happened
_UUID = re.compile(r"[\x21-\x7e]{1,200}")


class MessageProblem(ValueError):
    """A body is not a message; the text names the field and never quotes its value."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one API response, as the API counts them. The prompt is input + both cache numbers."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """Tokens of everything that was sent."""
        return self.input_tokens + self.cache_read_input_tokens + self.cache_creation_input_tokens

    @property
    def total_tokens(self) -> int:
        """Tokens of what was sent and what came back: the size of the conversation after the response."""
        return self.prompt_tokens + self.output_tokens

    def plus(self, other: Usage) -> Usage:
        """The sum over two calls."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_input_tokens + other.cache_read_input_tokens,
            self.cache_creation_input_tokens + other.cache_creation_input_tokens,
        )

    def to_dict(self) -> dict[str, int]:
        """The four numbers under the API's names."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_input_tokens": self.cache_read_input_tokens,
            "cache_creation_input_tokens": self.cache_creation_input_tokens,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of a conversation. `seq` is its place in the stored session, None for messages we make."""

    role: Role
    content: Content
    seq: int | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    api_message_id: str | None = None
    created_at: str | None = None  # RFC 3339 as the producer wrote it
    model: str | None = None
    usage: Usage | None = None
    is_meta: bool = False
    is_sidechain: bool = False
    partial: bool = False
    is_compact_summary: bool = False
    metadata: Mapping[str, Json] | None = None
    _estimate: int | None = field(default=None, init=False, repr=False, compare=False)  # a memo, see `estimated`
    _sound: bool | None = field(default=None, init=False, repr=False, compare=False)  # another, see `is_sound`

    @property
    def is_boundary(self) -> bool:
        """Whether this is the marker message where a compaction happened."""
        return self.role == "system" and self.metadata is not None and self.metadata.get("kind") == BOUNDARY_KIND

    @property
    def in_conversation(self) -> bool:
        """Whether the model sees the message: not a sub-agent's, not half streamed, not a system marker."""
        return self.role != "system" and not self.is_sidechain and not self.partial

    def blocks(self) -> list[Block]:
        """The content as a list of blocks; a string becomes one text block. Do not change the blocks."""
        return [{"type": "text", "text": self.content}] if isinstance(self.content, str) else self.content

    def rewritten(self, content: Content, parent_uuid: str | None) -> Message:
        """The message with other content and another parent; `dataclasses.replace` takes nearly twice as long."""
        return Message(
            role=self.role,
            content=content,
            seq=self.seq,
            uuid=self.uuid,
            parent_uuid=parent_uuid,
            api_message_id=self.api_message_id,
            created_at=self.created_at,
            model=self.model,
            usage=self.usage,
            is_meta=self.is_meta,
            is_sidechain=self.is_sidechain,
            partial=self.partial,
            is_compact_summary=self.is_compact_summary,
            metadata=self.metadata,
        )

    def estimated(self, estimate: Callable[[Message], int]) -> int:
        """`estimate(self)`, worked out once: several rules ask for every message's size, and messages never change.

        Always the same estimator: `core.tokens` has the one that there is.
        """
        if self._estimate is None:
            object.__setattr__(self, "_estimate", estimate(self))
        return cast("int", self._estimate)

    @property
    def is_sound(self) -> bool:
        """Whether every string and number of the content can be sent as it is (`core.characters`); seen once.

        The bytes of most bodies prove it when they are decoded. Says nothing about cache marks.
        """
        if self._sound is None:
            object.__setattr__(self, "_sound", characters.is_clean(self.content))
        return self._sound is True


def decode_message(body: bytes, *, seq: int | None = None) -> Message:
    """The message in `body`. Raises MessageProblem naming the field that is wrong."""
    try:
        value, sound = jsonbytes.decode_judged(body)
    except ValueError as error:
        raise MessageProblem("message", str(error)) from None
    if body.count(b"{") + body.count(b"[") > MAX_NESTING:  # as many levels take as many brackets
        _check_nesting(value)
    message = _message(value, seq)
    if sound:
        object.__setattr__(message, "_sound", True)
    return message


def message_from(value: Json, *, seq: int | None = None) -> Message:
    """The message in a decoded JSON object. Raises MessageProblem naming the field that is wrong."""
    _check_nesting(value)
    return _message(value, seq)


def _check_nesting(value: Json) -> None:
    if jsonbytes.nested_deeper_than(value, MAX_NESTING):
        raise MessageProblem("message", f"is nested deeper than {MAX_NESTING} levels")


def _message(value: Json, seq: int | None) -> Message:
    if not isinstance(value, dict):
        raise MessageProblem("message", "must be an object with role and content")
    role = value.get("role")
    if not isinstance(role, str) or role not in ROLES:  # what is no string may be unhashable
        raise MessageProblem("role", "must be user, assistant or system")
    metadata = value.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise MessageProblem("metadata", "must be an object")
    return Message(
        role=cast("Role", role),
        content=_content(value.get("content")),
        seq=seq,
        uuid=_name(value, "uuid"),
        parent_uuid=_name(value, "parent_uuid"),
        api_message_id=_name(value, "api_message_id"),
        created_at=_name(value, "created_at"),
        model=_name(value, "model"),
        usage=usage_from(value.get("usage")),
        is_meta=_flag(value, "is_meta"),
        is_sidechain=_flag(value, "is_sidechain"),
        partial=_flag(value, "partial"),
        is_compact_summary=_flag(value, "is_compact_summary"),
        metadata=metadata,
    )


def usage_from(value: Json) -> Usage | None:
    """The API's usage object; missing or null numbers count as 0. Raises MessageProblem for what is no count."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise MessageProblem("usage", "must be an object")
    numbers = []
    for key in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
        number = value.get(key) or 0
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= MAX_USAGE_TOKENS:
            raise MessageProblem(f"usage.{key}", f"must be a whole number from 0 to {MAX_USAGE_TOKENS}")
        numbers.append(number)
    return Usage(*numbers)


def encode_message(message: Message) -> bytes:
    """The body of a message that we made, envelope flat beside role and content (DESIGN §8)."""
    return jsonbytes.encode(envelope(message))


def envelope(message: Message) -> dict[str, Json]:
    """The flat envelope as a dict; fields that say nothing are left out."""
    fields: dict[str, Json] = {
        "uuid": message.uuid,
        "parent_uuid": message.parent_uuid,
        "role": message.role,
        "content": message.content,
        "api_message_id": message.api_message_id,
        "created_at": message.created_at,
        "model": message.model,
        "usage": message.usage.to_dict() if message.usage else None,
        "metadata": dict(message.metadata) if message.metadata is not None else None,
    }
    flags = {
        "is_meta": message.is_meta,
        "is_sidechain": message.is_sidechain,
        "partial": message.partial,
        "is_compact_summary": message.is_compact_summary,
    }
    kept = {key: value for key, value in fields.items() if value is not None}
    return kept | {key: True for key, on in flags.items() if on}


def conversation(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages that the model sees, in order."""
    return tuple(message for message in messages if message.in_conversation)


def _content(value: Json) -> Content:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise MessageProblem("content", "must be a string or a list of blocks")
    for index, block in enumerate(value):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise MessageProblem(f"content[{index}]", "must be an object with a string `type`")
    return value


def _name(value: dict[str, Json], key: str) -> str | None:
    name = value.get(key)
    if name is None:
        return None
    if not isinstance(name, str) or not _UUID.fullmatch(name):
        raise MessageProblem(key, f"must be 1 to {MAX_UUID_CHARS} printable ASCII characters without spaces")
    return name


def _flag(value: dict[str, Json], key: str) -> bool:
    flag = value.get(key)
    if flag is None:
        return False
    if not isinstance(flag, bool):
        raise MessageProblem(key, "must be true or false")
    return flag
