"""The standing constraints of the user that are carried from summary to summary, word for word.

Found twice over: here by the words of the user's own sentences, whatever the model makes of them, and in
`core.constraints` by the lines in which a summary names constraints and takes them back. Which of two constraints that
contradict each other holds is the model's to say (by a "Withdrawn:" line); here the newest only stand last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compaction.core.constraints import MAX_PINNED, user_texts
from compaction.core.cues import has_cue, sentences
from compaction.core.messages import Message
from compaction.core.speech import spoken

MAX_PINNED_CHARS = 10_000  # of all together, some 2,500 tokens: they stand in every later prompt and summary message
SCANNED_MESSAGE_CHARS = 20_000  # of one text; what stands further behind is pasted data
SCANNED_CHARS = 500_000  # of all texts, the newest first, so that a huge chat stays cheap

_ASKING = ("can you", "could you", "would you", "will you", "please")
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
    """As many of the newest constraints as the bounds allow, in their order."""
    kept: list[str] = []
    room = MAX_PINNED_CHARS
    for text in reversed(listed[-MAX_PINNED:]):
        room -= len(text)
        if room < 0:
            break
        kept.append(text)
    return tuple(reversed(kept))


def is_constraint(sentence: str) -> bool:
    """Whether a sentence lays down a rule; a question does not, unless it is a polite order."""
    lowered = sentence.lower()
    if lowered.rstrip("\"') ").endswith(("?", "\uff1f")) and not lowered.startswith(_ASKING):
        return False
    return has_cue(sentence, "constraints")


def _stated(messages: Sequence[Message]) -> list[str]:
    """The user's sentences that lay down a rule, oldest first."""
    return [found for text in reversed(list(_scanned(messages))) for found in text]


def _scanned(messages: Sequence[Message]) -> Iterator[list[str]]:
    """The rules of each text, newest text first."""
    room = SCANNED_CHARS
    for text in reversed(user_texts(messages)):
        part = text[: min(SCANNED_MESSAGE_CHARS, room)]
        room -= len(part)
        if not part:
            break
        yield [" ".join(sentence.split()) for sentence in sentences(spoken(part)) if is_constraint(sentence)]


def _key(text: str) -> str:
    return " ".join(text.casefold().split()).strip(_MARKS)
