"""All that the user said, word for word, the standing rules first (section 6)."""

from __future__ import annotations

from compaction.summarizers.extraction import constraints
from compaction.summarizers.extraction.excerpts import bullet, excerpt
from compaction.summarizers.extraction.items import Item
from compaction.summarizers.extraction.prior import Prior
from compaction.summarizers.extraction.timeline import Timeline

MAX_MESSAGE_CHARS = 4_000  # of one message; real wishes of this length are pasted plans
MAX_EDGE_MESSAGE_CHARS = 8_000  # of the first and the newest one, which say what the session is for
SHORT_CHARS = 300  # of a message that has to give way to newer ones


def items(timeline: Timeline, prior: Prior) -> list[Item]:
    """Rules, then user messages, oldest first, with those of an earlier summary; one sent twice stands once."""
    words = [text for _, text in timeline.said("user")]
    known = {_key(text) for text in words}
    carried = [entry for entry in prior.section(6) if _key(entry) not in known and not constraints.is_label(entry)]
    texts = [*carried, *(text for index, text in enumerate(words) if index == 0 or text != words[index - 1])]
    quotes = [_item(text, index in (0, len(texts) - 1)) for index, text in enumerate(texts)]
    return [*constraints.items(timeline, prior), *quotes]


def _item(text: str, at_edge: bool) -> Item:  # noqa: FBT001 - the one thing that differs
    limit = MAX_EDGE_MESSAGE_CHARS if at_edge else MAX_MESSAGE_CHARS
    return Item(bullet(excerpt(text, limit)), bullet(excerpt(text, SHORT_CHARS)))


def _key(text: str) -> str:
    return " ".join(text.split()).strip('"“”')
