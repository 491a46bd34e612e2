"""Turns: what the API sees of a conversation, {role, content} with one turn per speaker.

Messages are what producers store: fragments of one answer, repeated rows, sub-agents' messages. `merge` makes turns of
them and repairs nothing; `core.repair` makes turns valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compaction.core import grouping
from compaction.core.messages import Block, Content, Message

Turn = dict[str, Any]  # {"role": "user" | "assistant", "content": str | list of blocks}


def merge(messages: Sequence[Message]) -> list[Turn]:
    """The conversation as alternating turns, content untouched.

    Messages outside the conversation are left out, rows with a uuid seen before too. Within a round all of the answer's
    fragments form the assistant turn and everything else the user turn after it. Neighbours of one role are one turn.
    """
    spoken: list[tuple[str, list[Content]]] = []
    for members in grouping.grouped(distinct(messages)):
        answer = [message.content for message in members if message.role == "assistant"]
        if answer:
            _say(spoken, "assistant", answer)
        if len(answer) < len(members):
            _say(spoken, "user", [message.content for message in members if message.role == "user"])
    return [{"role": role, "content": joined(contents)} for role, contents in spoken]


def _say(spoken: list[tuple[str, list[Content]]], role: str, contents: list[Content]) -> None:
    if spoken and spoken[-1][0] == role:
        spoken[-1][1].extend(contents)
    else:
        spoken.append((role, contents))


def distinct(messages: Iterable[Message]) -> list[Message]:
    """The messages of the conversation, each uuid once: the first row with it counts."""
    seen: set[str] = set()
    kept: list[Message] = []
    for message in messages:
        if message.in_conversation and message.uuid not in seen:
            kept.append(message)
            if message.uuid is not None:
                seen.add(message.uuid)
    return kept


def joined(contents: Sequence[Content]) -> Content:
    """The contents of neighbours as one; a single one stays as it is."""
    if len(contents) == 1:
        return contents[0]
    return [block for content in contents for block in blocks_of(content)]


def blocks_of(content: Content) -> list[Block]:
    """The content as blocks; a string is one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
