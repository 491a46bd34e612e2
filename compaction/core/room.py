"""How much room a request has, and how its messages are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compaction.core import jsonbytes, tokens
from compaction.core.messages import Message
from compaction.core.rendering import render_transcript

Measure = Callable[[Message], int]  # the size of one message in the unit that matters

_FRAME = render_transcript(())  # what stands around any transcript
_FRAME_TOKENS = tokens.estimate_text(_FRAME)
_FRAME_BYTES = len(jsonbytes.encode(_FRAME))


def shown_tokens(message: Message) -> int:
    """The estimated tokens of a message as a fresh request shows it: as text, media as markers, no thinking."""
    return tokens.estimate_text(render_transcript((message,))) - _FRAME_TOKENS


def shown_bytes(message: Message) -> int:
    """The bytes of a message in the body of a fresh request."""
    return len(jsonbytes.encode(render_transcript((message,)))) - _FRAME_BYTES


def sent_bytes(message: Message) -> int:
    """The bytes of a message in the body of a request that sends it as it is."""
    return tokens.estimate_bytes((message,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What is known about a request beside its messages, by our own measure.

    `fits_tokens` is the most that everything together may take, None when unknown; `fixed_tokens` is what prompts,
    system and tools take of it. The measures say how large the request makes one message; by default it is a fresh
    one. For one that sends the messages themselves pass `tokens.estimate_message` and `sent_bytes`.
    """

    fits_tokens: int | None = None
    fixed_tokens: int = 0
    measure: Measure = shown_tokens
    measure_bytes: Measure = shown_bytes
