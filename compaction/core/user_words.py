"""What the user wrote, and which pieces of it are whole sentences: half of one can say the opposite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compaction.core.cues import ANY_LINE_CHARS, is_listed, sentences
from compaction.core.messages import Message
from compaction.core.speech import spoken

SCANNED_MESSAGE_CHARS = 20_000  # of one text; what stands further behind is pasted data
SCANNED_CHARS = 500_000  # of all texts, the newest first, so that a huge chat stays cheap

_HEADS = (":", "\uff1a")  # "Never do this:", and then a list
_PAUSES = ("...", "\u2026")  # "Never ... delete it": what follows is the same sentence


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
    """As much of the texts as is read for rules, without what a client put into them; oldest first."""
    parts: list[str] = []
    room = SCANNED_CHARS
    for text in reversed(texts):
        part = text[: min(SCANNED_MESSAGE_CHARS, room)]
        room -= len(part)
        if not part:
            break
        parts.append(spoken(part))
    return tuple(reversed(parts))


def whole_sentences(text: str) -> Iterator[str]:
    """The sentences of a text, in its order; lines below a heading that ends with a colon bring the heading along.

    A line that may go on with the one above it is no sentence of its own, however short they are.
    """
    heading = ""
    for part in _paragraphs(text):
        pieces = list(_joined(sentences(part, wrapped_line_chars=ANY_LINE_CHARS)))
        if not pieces:
            continue
        if pieces[-1].endswith(_HEADS):
            yield from pieces[:-1]
            heading = pieces[-1]
        elif heading:
            yield f"{heading} {' '.join(pieces)}"
            heading = heading if is_listed(part) else ""
        else:
            yield from pieces


def _paragraphs(text: str) -> Iterator[str]:
    """A text cut behind headings and before the items of lists; what goes on over lines stays together."""
    kept: list[str] = []
    for line in text.split("\n"):
        if kept and (is_listed(line) or not line.strip() or kept[-1].rstrip().endswith(_HEADS)):
            yield "\n".join(kept)
            kept = []
        kept.append(line)
    yield "\n".join(kept)


def _joined(pieces: Sequence[str]) -> Iterator[str]:
    open_piece = ""
    for piece in pieces:
        open_piece = f"{open_piece} {piece}".strip()
        if not open_piece.endswith(_PAUSES):
            yield open_piece
            open_piece = ""
    if open_piece:
        yield open_piece
