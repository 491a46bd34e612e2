"""One message in the shape of the Messages API with our envelope: read from its JSON object, and turned into a body."""

from __future__ import annotations

from dataclasses import dataclass, fields

import msgspec

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.core.messages import Message, MessageProblem, message_from
from compaction.formats.content import ContentFacts, content_facts
from compaction.formats.envelopes import join

_ENVELOPE = tuple(
    field.name for field in fields(Message) if field.init and field.name not in {"role", "content", "seq"}
)


class _Content(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw(b"")


_DECODER = msgspec.json.Decoder(_Content)


@dataclass(frozen=True, slots=True)
class PlainMessage:
    """A message that can be stored. `body` is its object as it stands in the file, but for wrong envelope fields."""

    body: bytes
    message: Message
    content: ContentFacts

    def named(self, uuid: str) -> bytes:
        """The body with a uuid: its own, or `uuid` put before what stands there."""
        if self.message.uuid is not None:
            return self.body
        return b'{"uuid":' + jsonbytes.encode(uuid) + b"," + self.body.lstrip()[1:]


def decode_object(data: bytes) -> dict[str, Json] | None:
    """The JSON object in `data`; None when it is not one or is nested too deep."""
    try:
        value = jsonbytes.decode(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def plain_message(data: bytes, value: dict[str, Json]) -> PlainMessage | None:
    """The message in `data` (valid UTF-8, decoded as `value`); None without a usable role and content.

    Envelope fields that no envelope takes are left out: a wrong date does not cost the words.
    """
    raw = _content(data)
    content = content_facts(raw) if raw else None
    if content is None or not isinstance(value.get("role"), str):
        return None
    message = _message(value)
    if message is not None and (message.uuid is not None or "uuid" not in value):
        return PlainMessage(data, message, content)
    body = _mended(value, raw)
    message = _message(jsonbytes.decode(body))
    return PlainMessage(body, message, content) if message is not None else None


def _message(value: Json) -> Message | None:
    try:
        return message_from(value)
    except MessageProblem:
        return None


def _content(data: bytes) -> bytes:
    try:
        return bytes(_DECODER.decode(data).content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _content_leniently(data)


def _content_leniently(data: bytes) -> bytes:
    try:
        return jsonbytes.members(data).get("content", b"")
    except ValueError:
        return b""


def _mended(value: dict[str, Json], content: bytes) -> bytes:
    kept = {key: value[key] for key in _ENVELOPE if value.get(key) is not None and _fits(key, value[key])}
    return join({"role": value.get("role"), "content": content} | kept)


def _fits(key: str, value: Json) -> bool:
    return _message({"role": "user", "content": "", key: value}) is not None
