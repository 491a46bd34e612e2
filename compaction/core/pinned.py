"""The standing constraints of the user that are carried from summary to summary, word for word.

Found twice over: here by the words of the user's own sentences, whatever the model makes of them, and in
`core.constraints` by the lines in which a summary names constraints and takes them back. Which of two constraints that
contradict each other holds is the model's to say (by a "Withdrawn:" line); here the newest only stand last.
"""

from __future__ import annotations

from collections.abc import Sequence

from compaction.core.constraints import MAX_PINNED, MAX_PINNED_CHARS, is_constraint
from compaction.core.cues import sentences
from compaction.core.messages import Message
from compaction.core.user_words import scanned, user_texts

_MARKS = " .!\"'`“”"


def constraints(messages: Sequence[Message], earlier: Sequence[str] = ()) -> tuple[str, ...]:
    """The list after `messages`: the earlier ones, then what the user laid down in them, oldest first, each once.

    Bounded by MAX_PINNED and MAX_PINNED_CHARS; where there is more, the newest stay.
    """
    found: dict[str, str] = {}
    for text in (*earlier, *_stated(messages)):
        found.setdefault(_key(text), text)
    found.pop("", None)
    return within(tuple(found.values()))


def within(listed: Sequence[str]) -> tuple[str, ...]:
    """As many as the bounds allow, in their order: the newest that are rules by their words, then the newest others."""
    kept: set[int] = set()
    room = MAX_PINNED_CHARS
    places = list(reversed(range(len(listed))))
    for place in sorted(places, key=lambda place: not is_constraint(listed[place])):  # a stable sort: newest first
        text = listed[place]
        if len(kept) < MAX_PINNED and len(text) <= room:  # one that is too long makes room for nobody
            room -= len(text)
            kept.add(place)
    return tuple(listed[place] for place in sorted(kept))


def _stated(messages: Sequence[Message]) -> list[str]:
    """The user's sentences that lay down a rule, oldest first."""
    return [
        " ".join(sentence.split())
        for text in scanned(user_texts(messages))
        for sentence in sentences(text)
        if is_constraint(sentence)
    ]


def _key(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_MARKS)
