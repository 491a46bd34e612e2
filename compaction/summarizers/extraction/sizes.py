"""How many characters a conversation holds, counted cheaply."""

from __future__ import annotations

from collections.abc import Sequence

from compaction.core.jsonbytes import Json
from compaction.core.messages import Block, Message

_NAMES = ("type", "id", "tool_use_id", "signature")  # no content
DEPTH = 3  # enough for the texts in a tool's input and in a result's blocks


def message_chars(message: Message) -> int:
    """The characters of a message's texts, tool inputs and results."""
    return sum(block_chars(block) for block in message.blocks() if isinstance(block, dict))


def exceeds(messages: Sequence[Message], limit_chars: int) -> bool:
    """Whether the messages hold more than that; stops counting as soon as it knows."""
    room = limit_chars
    for message in messages:
        room -= message_chars(message)
        if room < 0:
            return True
    return False


def block_chars(block: Block) -> int:
    """The characters of a block's texts; base64 of images counts, as it does in the request."""
    return sum(_length(value, DEPTH) for key, value in block.items() if key not in _NAMES)


def _length(value: Json, depth: int) -> int:
    if isinstance(value, str):
        return len(value)
    if depth and isinstance(value, dict):
        return sum(_length(inner, depth - 1) for inner in value.values())
    if depth and isinstance(value, list):
        return sum(_length(inner, depth - 1) for inner in value)
    return 0
