"""Session-memory compaction: the agent's own notes are the summary, and the newest messages stay (DESIGN §3, §8).

No model is called. Kept are at least 10,000 tokens and 5 messages with text, never more than 40,000 tokens: the cap
wins over both. The kept messages never reach behind the last boundary or summary, and never part what belongs together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.core import chronology, kept, memory_text, tokens
from compaction.core.cuts import safe_cuts
from compaction.core.messages import Message
from compaction.core.open_round import open_round
from compaction.core.rebuilt import is_rebuilt

MEMORY_TOKENS = 20_000  # DESIGN §3: a summary's cap; the document stands in the place of one


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of the newest messages stays."""

    min_tokens: int = 10_000  # DESIGN §3
    min_texts: int = 5  # DESIGN §3: messages with text
    max_tokens: int = 40_000  # DESIGN §3; wins over the 5 messages (§8)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCompaction:
    """What the session goes on with: the document as `summary`, then `kept`, ready for a result.

    `replaced` is everything else of the conversation. Tokens are estimates; `kept_tokens` is that of the kept messages
    as they were stored, by which the limits were kept. `memory_cut` says that the document was over its budget.
    """

    summary: str
    kept: tuple[Message, ...]
    replaced: tuple[Message, ...]
    kept_tokens: int
    kept_texts: int
    memory_tokens: int
    memory_cut: bool


def compact(
    messages: Sequence[Message], memory: str, *, limits: Limits | None = None, budget_tokens: int = MEMORY_TOKENS
) -> MemoryCompaction | None:
    """The compaction of a live view by its memory document; None when the document says nothing, or nothing would go.

    A last round with open calls stays even over the cap: dropping it would lose the results that are still to come.
    Whether the whole comes under the session's threshold is for the caller to see.
    """
    if memory_text.is_empty(memory):
        return None
    spoken = chronology.chronological(messages)
    waiting = {id(message) for message in open_round(spoken)}
    start = _start(spoken, limits or Limits())
    tail = [message for message in spoken[start:] if not is_rebuilt(message)]
    staying = {id(message) for message in tail} | {id(m) for m in spoken if id(m) in waiting and not is_rebuilt(m)}
    stay = tuple(message for message in spoken if id(message) in staying)
    if len(stay) == len(spoken):
        return None
    summary = memory_text.within(memory, budget_tokens)
    return MemoryCompaction(
        summary=summary,
        kept=kept.carried(stay),
        replaced=tuple(message for message in spoken if id(message) not in staying),
        kept_tokens=tokens.estimate_messages(stay),
        kept_texts=sum(map(has_text, stay)),
        memory_tokens=tokens.estimate_text(summary),
        memory_cut=summary != memory.strip(),
    )


def has_text(message: Message) -> bool:
    """Whether somebody says something in the message: words, not only calls, results, media or injected text."""
    if message.is_meta:
        return False
    texts = (block.get("text") for block in message.blocks() if block["type"] == "text")
    return any(isinstance(text, str) and not text.isspace() and text for text in texts)


def _start(spoken: Sequence[Message], limits: Limits) -> int:
    """Where the kept messages begin: the first safe place, walking back, at which both minimums are met."""
    safe = safe_cuts(spoken)
    start = len(spoken)
    size = texts = 0
    for place in range(len(spoken) - 1, -1, -1):
        message = spoken[place]
        if message.is_compact_summary:
            break
        if not is_rebuilt(message):
            size += tokens.estimate_message(message)
            texts += has_text(message)
        if size > limits.max_tokens:
            break
        if safe[place]:
            start = place
            if size >= limits.min_tokens and texts >= limits.min_texts:
                break
    return start
