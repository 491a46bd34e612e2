"""The live view: what an agent goes on with, as stored bodies, as messages, or as its model's API takes it."""

from __future__ import annotations

from collections.abc import Iterable

from compaction.core import json_values, jsonbytes, wire
from compaction.core.messages import Message, decode_message, encode_message
from compaction.errors import TooLarge
from compaction.formats.chat_output import chat_messages
from compaction.store.sessions import LiveView, StoredMessage

_CROWDED = (
    f"The live view holds more than {json_values.MAX_VIEW_VALUES} JSON values, too many to decode at once. "
    "Read it with view=full, which is streamed."
)


def size_bytes(live: LiveView) -> int:
    """About how much there is to decode; a result is small, that is its point."""
    return sum(len(stored.body) for stored in live.messages)


def refuse_crowded(stored: Iterable[StoredMessage]) -> None:
    """Raises TooLarge for messages that would take the process's memory when they are decoded together."""
    if json_values.together_hold_more((one.body for one in stored), json_values.MAX_VIEW_VALUES):
        raise TooLarge(_CROWDED)


def live_messages(live: LiveView) -> tuple[Message, ...]:
    """The view's messages, a result's first; without a sub-agent's and half streamed ones (DESIGN §8).

    Raises TooLarge.
    """
    refuse_crowded(live.messages)
    stored = (decode_message(stored.body, seq=stored.seq) for stored in live.messages)
    return (*_result_messages(live), *filter(belongs, stored))


def live_bodies(live: LiveView) -> list[bytes]:
    """The same as bodies: stored ones as the bytes they are, a result's in our own writing."""
    for item in live.messages:
        refuse_crowded((item,))  # stored by a version that took any number
    stored = [item.body for item in live.messages if belongs(decode_message(item.body))]
    return [*map(encode_message, _result_messages(live)), *stored]


def api_bodies(live: LiveView) -> list[bytes]:
    """Ready to send: {role, content} alone, valid when a user message is appended."""
    return [jsonbytes.encode(message) for message in wire.api_messages(live_messages(live))]


def chat_bodies(live: LiveView, system: bytes | None) -> list[bytes]:
    """The same for a chat completion; `system` is the session's system prompt as JSON."""
    turns = wire.api_messages(live_messages(live))
    prompt = None if system is None else jsonbytes.decode(system)
    return [jsonbytes.encode(message) for message in chat_messages(turns, prompt)]


def _result_messages(live: LiveView) -> tuple[Message, ...]:
    return () if live.result_body is None else live.result_body.messages


def belongs(message: Message) -> bool:
    """Whether a stored message is part of the conversation that its producer goes on with."""
    return not (message.partial or message.is_sidechain)
