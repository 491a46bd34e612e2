"""Summaries that the API's own compaction left in a conversation: blocks of type `compaction`.

The API forgets whatever stands before the last of them, and takes a signed one only at the very beginning
(facts/anthropic.md §3). Behind a summary message of ours such a block would take that summary with it, so there it is
told as text.
"""

from __future__ import annotations

from collections.abc import Sequence

from compaction.core.block_text import block_text
from compaction.core.messages import Block, Message

KIND = "compaction"
FAILED = "[compaction] (it failed)"  # what a block without content says; a message needs some content


def told(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with every such block as text; those without one are the same objects."""
    return tuple(_told(message) if _has_one(message) else message for message in messages)


def told_behind_ours(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with those blocks as text that stand behind a summary message of ours."""
    start = first_behind_ours(messages)
    return tuple(messages) if start is None else (*messages[:start], *told(messages[start:]))


def first_behind_ours(messages: Sequence[Message]) -> int | None:
    """The place of the first message that would make the API forget a summary of ours, None without one."""
    ours = False
    for place, message in enumerate(messages):
        if ours and _has_one(message):
            return place
        ours = ours or message.is_compact_summary
    return None


def _has_one(message: Message) -> bool:
    return not isinstance(message.content, str) and any(block["type"] == KIND for block in message.content)


def _told(message: Message) -> Message:
    content = [_as_text(block) if block["type"] == KIND else block for block in message.blocks()]
    return message.rewritten(content, message.parent_uuid)


def _as_text(block: Block) -> Block:
    text = block_text(block)
    return {"type": "text", "text": text if text.strip() else FAILED}
