"""The messages that a compaction keeps, made fit for their new place: no thinking, one chain, recorded on the boundary.

A thinking block is signed for exactly what stood before it. Once anything there was rewritten, the API refuses it
(facts: preserved thinking), so all of it goes from that place on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compaction.core.boundary import PreservedSegment
from compaction.core.fields import SIGNED
from compaction.core.messages import Message


def without_thinking(messages: Sequence[Message], start: int = 0) -> tuple[Message, ...]:
    """The messages with all thinking gone from index `start` on; those without any are the same objects.

    A message of nothing but thinking goes altogether (the API takes no empty one), and what hung on it by its
    parent_uuid hangs on its parent then.
    """
    left: list[Message] = list(messages[:start])
    gone: dict[str, str | None] = {}
    for message in messages[start:]:
        lighter = _lighter(message)
        if lighter is None:
            if message.uuid is not None:
                gone[message.uuid] = _parent(message.parent_uuid, gone)
        elif lighter.parent_uuid in gone:
            left.append(replace(lighter, parent_uuid=_parent(lighter.parent_uuid, gone)))
        else:
            left.append(lighter)
    return tuple(left)


def chained(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages as one chain: whoever hangs on a message that is not among those before it hangs on the one before.

    The first keeps its parent: the boundary's preserved segment says what it hangs on now. Messages without a parent
    stay without.
    """
    linked: list[Message] = []
    known: set[str | None] = {None}
    for message in messages:
        before = linked[-1].uuid if linked else message.parent_uuid
        lost = message.parent_uuid not in known and before is not None and before != message.parent_uuid
        linked.append(replace(message, parent_uuid=before) if lost else message)
        known.add(message.uuid)
    return tuple(linked)


def carried(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Kept messages as they stand in a result: without thinking, in one chain."""
    return chained(without_thinking(messages))


def preserved(messages: Sequence[Message], anchor_uuid: str | None) -> PreservedSegment | None:
    """What the boundary records of the kept messages; `anchor_uuid` is that of the message before the first of them."""
    if not messages:
        return None
    return PreservedSegment(
        head_uuid=messages[0].uuid,
        tail_uuid=messages[-1].uuid,
        anchor_uuid=anchor_uuid,
        messages=len(messages),
    )


def _lighter(message: Message) -> Message | None:
    if isinstance(message.content, str) or not any(block["type"] in SIGNED for block in message.content):
        return message
    blocks = [block for block in message.content if block["type"] not in SIGNED]
    return replace(message, content=blocks) if blocks else None


def _parent(uuid: str | None, gone: Mapping[str, str | None]) -> str | None:
    """The nearest ancestor that is still there; parents of what is gone are resolved already."""
    return gone[uuid] if uuid is not None and uuid in gone else uuid
