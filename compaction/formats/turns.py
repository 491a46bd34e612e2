"""Counts of a conversation as the API sees it: rows of one API message merged, neighbours of one role joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compaction.core import jsonbytes
from compaction.core.messages import Message
from compaction.formats.content import ContentFacts, content_facts


@dataclass(frozen=True, slots=True)
class Entry:
    """One user or assistant message as it is stored: role, the API message it is a part of, and what it holds."""

    role: str
    api_message_id: str | None
    content: ContentFacts


@dataclass(slots=True)
class Turn:
    """What one speaker said until the other one spoke: call ids and counts, no content."""

    role: str
    tool_uses: list[str] = field(default_factory=list)
    tool_results: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """The counts before any repair. `messages` are turns; the orphans and blanks are what a repair has to mend."""

    messages: int
    rows_used: int
    first_role: str | None
    last_role: str | None
    tool_use: int
    tool_result: int
    orphan_tool_use: int  # calls that the next user turn does not answer
    orphan_tool_use_in_last_message: int
    orphan_tool_result: int  # results whose call is not in the turn before
    blank_text_blocks: int
    thinking_blocks: int
    image_blocks: int
    document_blocks: int
    api_messages: int  # distinct assistant messages of the API


def entry_of(message: Message) -> Entry | None:
    """The entry of a stored message; None for what the model never sees."""
    facts = content_facts(jsonbytes.encode(message.content))
    if not message.in_conversation or facts is None:
        return None
    return Entry(message.role, message.api_message_id, facts)


def turns(entries: Iterable[Entry]) -> list[Turn]:
    """The turns. A fragment joins its API message where that began, even when tool results stand in between."""
    return _join(_merge(entries))


def _merge(entries: Iterable[Entry]) -> list[Turn]:
    messages: list[Turn] = []
    begun: dict[str, Turn] = {}
    for entry in entries:
        key = entry.api_message_id if entry.role == "assistant" else None
        turn = begun.get(key) if key is not None else None
        if turn is None:
            turn = Turn(entry.role)
            messages.append(turn)
            if key is not None:
                begun[key] = turn
        turn.tool_uses += entry.content.tool_uses
        turn.tool_results += entry.content.tool_results
    return messages


def _join(messages: Iterable[Turn]) -> list[Turn]:
    joined: list[Turn] = []
    for message in messages:
        if joined and joined[-1].role == message.role:
            joined[-1].tool_uses += message.tool_uses
            joined[-1].tool_results += message.tool_results
        else:
            joined.append(message)
    return joined


def turn_facts(entries: Sequence[Entry], *, rows_used: int | None = None) -> TurnFacts:
    """The facts of a whole view. `rows_used` is how many rows it was made from, if some of them hold no message."""
    spoken = turns(entries)
    contents = [entry.content for entry in entries]
    return TurnFacts(
        messages=len(spoken),
        rows_used=len(entries) if rows_used is None else rows_used,
        first_role=spoken[0].role if spoken else None,
        last_role=spoken[-1].role if spoken else None,
        tool_use=sum(len(content.tool_uses) for content in contents),
        tool_result=sum(len(content.tool_results) for content in contents),
        orphan_tool_use=sum(_open_calls(spoken, index) for index in range(len(spoken))),
        orphan_tool_use_in_last_message=_open_calls(spoken, len(spoken) - 1) if spoken else 0,
        orphan_tool_result=sum(_stray_results(spoken, index) for index in range(len(spoken))),
        blank_text_blocks=sum(content.blank_texts for content in contents),
        thinking_blocks=sum(content.thinking for content in contents),
        image_blocks=sum(content.images for content in contents),
        document_blocks=sum(content.documents for content in contents),
        api_messages=len({entry.api_message_id for entry in entries if entry.role == "assistant"} - {None}),
    )


def _open_calls(spoken: Sequence[Turn], index: int) -> int:
    answered = set(spoken[index + 1].tool_results) if index + 1 < len(spoken) else set()
    return sum(1 for call in spoken[index].tool_uses if call not in answered)


def _stray_results(spoken: Sequence[Turn], index: int) -> int:
    called = set(spoken[index - 1].tool_uses) if index > 0 else set()
    return sum(1 for call in spoken[index].tool_results if call not in called)
