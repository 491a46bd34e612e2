"""The messages that a compaction keeps, made fit for their new place: no thinking, one chain, recorded on the boundary.

A thinking block is signed for exactly what stood before it. Once anything there was rewritten, the API refuses it
(facts: preserved thinking), so all of it goes from that place on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compaction.core import server_summaries
from compaction.core.boundary import PreservedSegment
from compaction.core.fields import SIGNED
from compaction.core.messages import Block, Message


def without_thinking(messages: Sequence[Message], start: int = 0) -> tuple[Message, ...]:
    """The messages with all thinking gone from index `start` on; those without any are the same objects.

    A message of nothing but thinking goes altogether (the API takes no empty one), and what hung on it by its
    parent_uuid hangs on its parent then.
    """
    return parted_from_thinking(messages, start)[0]


def parted_from_thinking(messages: Sequence[Message], start: int = 0) -> tuple[tuple[Message, ...], list[Block]]:
    """What `without_thinking` leaves, and the thinking blocks that went."""
    left: list[Message] = list(messages[:start])
    thoughts: list[Block] = []
    gone: dict[str | None, str | None] = {}
    for message in messages[start:]:
        content = message.content
        thinking = [] if isinstance(content, str) else [block for block in content if block["type"] in SIGNED]
        thoughts += thinking
        if thinking and len(thinking) == len(content):
            if message.uuid is not None:
                gone[message.uuid] = gone.get(message.parent_uuid, message.parent_uuid)
            continue
        parent = gone.get(message.parent_uuid, message.parent_uuid)  # the parents of what is gone are resolved already
        if thinking:
            content = [block for block in message.blocks() if block["type"] not in SIGNED]
        same = not thinking and parent == message.parent_uuid
        left.append(message if same else message.rewritten(content, parent))
    return tuple(left), thoughts


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
    """Kept messages as they stand in a result, behind its summary: without thinking, in one chain.

    Summaries of the API's own among them are text: as blocks they would make it forget ours.
    """
    return chained(server_summaries.told(without_thinking(messages)))


def behind_ours(messages: Sequence[Message]) -> tuple[Message, ...]:
    """A history that goes on behind an earlier summary message: the API's own summaries behind that one are text.

    From the first of them on thinking is gone, as behind any rewritten message.
    """
    start = server_summaries.first_behind_ours(messages)
    return tuple(messages) if start is None else without_thinking(server_summaries.told_behind_ours(messages), start)


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
