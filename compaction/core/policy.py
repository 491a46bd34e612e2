"""Whether a job compacts at all: the guards of DESIGN §3, in the order that decides the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compaction.core import grouping
from compaction.core.jobs import Trigger
from compaction.core.messages import Message, conversation

SkipReason = Literal[
    "below_threshold",
    "circuit_open",
    "disabled",
    "recursion_guard",
    "reactive_mode",
    "context_collapse",
    "nothing_to_compact",
]

# Sessions that compaction itself runs (session memory, the summary) and the context agent's: no end to compacting them.
RECURSIVE_SOURCES = frozenset({"session_memory", "compact", "marble_origami"})
BYTES_PERCENT = 90  # of the provider's limit: the next turn, the system prompt and the tools need room too
MIN_ROUNDS = 2  # DESIGN §8: with fewer there is nothing that a summary could stand for


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """What the guards look at. Tokens and bytes are those of the session; a byte limit of None is not asked.

    `force` lifts an open breaker for a bulk job and nothing else: a manual or reactive job ignores the breaker
    anyway, and whoever wants to force an automatic one sends a manual one.
    """

    trigger: Trigger
    force: bool = False
    disable_compact: bool = False  # DISABLE_COMPACT
    breaker_open: bool = False
    query_source: str | None = None
    disable_auto_compact: bool = False  # DISABLE_AUTO_COMPACT
    auto_compact_enabled: bool = True  # the session's own setting
    reactive_mode: bool = False
    context_collapse: bool = False
    tokens: int = 0
    threshold: int = 0
    size_bytes: int = 0
    limit_bytes: int | None = None  # a session can be too big for the provider's body limit and yet small in tokens


def skip_reason(guards: Guards) -> SkipReason | None:
    """Why the job is skipped, None to go on. All obey DISABLE_COMPACT and the recursion guard, auto obeys them all."""
    if guards.disable_compact:
        return "disabled"
    if guards.breaker_open and _obeys_breaker(guards):
        return "circuit_open"
    if guards.query_source in RECURSIVE_SOURCES:
        return "recursion_guard"
    return _automatic_reason(guards) if guards.trigger == "auto" else None


def nothing_to_compact(messages: Sequence[Message]) -> bool:
    """Whether the live view holds no user message or fewer than two rounds (DESIGN §8).

    A message of tool results is a user message: a session of assistant and tool messages alone is summarised.
    """
    seen = conversation(messages)
    return not any(message.role == "user" for message in seen) or not grouping.has_rounds(seen, MIN_ROUNDS)


def _obeys_breaker(guards: Guards) -> bool:
    return guards.trigger == "auto" or (guards.trigger == "bulk" and not guards.force)


def _automatic_reason(guards: Guards) -> SkipReason | None:
    if guards.disable_auto_compact or not guards.auto_compact_enabled:
        return "disabled"
    if guards.reactive_mode:
        return "reactive_mode"
    if guards.context_collapse:
        return "context_collapse"
    return "below_threshold" if guards.tokens < guards.threshold and not _over_bytes(guards) else None


def _over_bytes(guards: Guards) -> bool:
    return guards.limit_bytes is not None and guards.size_bytes * 100 >= guards.limit_bytes * BYTES_PERCENT
