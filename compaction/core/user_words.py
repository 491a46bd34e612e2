"""What the user wrote, and which pieces of it are whole sentences: half of one can say the opposite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from compaction.core.cues import is_fence, is_listed, split, unspaced
from compaction.core.messages import Message
from compaction.core.speech import spoken

SCANNED_MESSAGE_CHARS = 20_000  # of one text; what stands further behind is pasted data
SCANNED_CHARS = 500_000  # of all texts, the newest first, so that a huge chat stays cheap
RAW_CHARS = 20 * SCANNED_MESSAGE_CHARS  # of one text as it came: clients put whole files before the user's words

_HEADS = (":", "\uff1a")  # "Never do this:", and then a list
_ENDS = (*_HEADS, ".", "!", "?", ";", "\u3002", "\uff01", "\uff1f", "\uff1b")
_PAUSES = ("...", "\u2026")  # "Never ... delete it": what follows is the same sentence
_EMPHASIS = "*_` "


def user_texts(messages: Sequence[Message]) -> tuple[str, ...]:
    """The texts of user messages that are neither injected nor a summary, oldest first, without tool results."""
    own = (one for one in messages if one.role == "user" and one.in_conversation and not one.is_meta)
    return tuple(
        block["text"]
        for message in own
        if not message.is_compact_summary
        for block in message.blocks()
        if block["type"] == "text" and isinstance(block.get("text"), str)
    )


def scanned(texts: Sequence[str]) -> tuple[str, ...]:
    """As much of the texts as is read for rules, oldest first, without what clients put in and what the user quotes."""
    parts: list[str] = []
    room = SCANNED_CHARS
    for text in reversed(texts):
        if room <= 0:
            break
        part = _clipped(spoken(text[:RAW_CHARS]), min(SCANNED_MESSAGE_CHARS, room))
        room -= max(1, len(part))
        parts.append("\n".join(line for line in part.split("\n") if not line.lstrip().startswith(">")))
    return tuple(reversed(parts))


def whole_sentences(text: str) -> Iterator[str]:
    """The sentences of a text, in its order, and nothing that may be a piece of one.

    Lines of a paragraph belong together. What stands below a heading brings the heading along: a line with a colon at
    its end, or one before a list.
    """
    heading = ""
    for part, following in pairwise([*_paragraphs(text), ""]):
        pieces = list(_joined(split(part.replace("\n", " "))))
        last = pieces[-1].rstrip(_EMPHASIS)
        leads = last.endswith(_HEADS) or (is_listed(following) and not is_listed(part) and not last.endswith(_ENDS))
        for piece in pieces[:-1] if leads else pieces:
            yield f"{heading} {piece}".lstrip()
        heading = pieces[-1] if leads else heading


def _clipped(text: str, limit_chars: int) -> str:
    """The beginning of a text, to the end of a line."""
    return text if len(text) <= limit_chars else text[: text.rfind("\n", 0, limit_chars) + 1]


def _paragraphs(text: str) -> list[str]:
    """A text without code, cut at empty lines, before the items of lists and behind headings."""
    found: list[list[str]] = [[]]
    fenced = False
    for line in text.split("\n"):
        if is_fence(line):
            fenced = not fenced
        elif not fenced:
            above = found[-1][-1].rstrip(_EMPHASIS) if found[-1] else ""
            if is_listed(line) or not line.strip() or above.endswith(_HEADS):
                found.append([])
            found[-1].append(line)
    return ["\n".join(lines) for lines in found if any(map(str.strip, lines))]


def _joined(pieces: Sequence[str]) -> Iterator[str]:
    """Sentences, one at least, put together again that were cut behind a pause or an abbreviation."""
    held = ""
    for piece in pieces:
        if held and not (held.endswith(_PAUSES) or _goes_on(piece)):
            yield held
            held = ""
        held = f"{held} {piece}".lstrip()
    yield held


def _goes_on(piece: str) -> bool:
    """Whether it begins like the middle of a sentence; scripts without capitals say nothing about it."""
    return not (piece[:1].isupper() or unspaced(piece[:1]))
