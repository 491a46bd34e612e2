"""An earlier summary at the head of the history, taken apart so that its facts live on in the new one's sections."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from compaction.core.messages import Message
from compaction.core.sections import Heading, headings
from compaction.summarizers.extraction.excerpts import clean

_BULLET = re.compile(r"^([ \t]*)(?:[-*•]|\d{1,3}[.)])[ \t]+")
_RULE = re.compile(r"[ \t]*(?:[-*•][ \t]+)?[*_]{0,2}(?:constraint|withdrawn):", re.IGNORECASE)
_LABEL = re.compile(r"^summary:[ \t]*$|<summary>", re.IGNORECASE | re.MULTILINE)  # it ends what came before
MAX_PRIOR_CHARS = 200_000  # ten times the longest summary seen (24,528 characters); more is no summary
MAX_ENTRIES = 400  # of one section


@dataclass(frozen=True, slots=True)
class Prior:
    """Entries of an earlier summary by section number, 1 to 9. Empty when there was none.

    Entries are plain text without their list mark; continuation lines are dedented.
    """

    entries: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def section(self, number: int) -> tuple[str, ...]:
        """The entries of one section, in their order."""
        return self.entries.get(number, ())


def prior_message(messages: Sequence[Message], prior_summary: str | None) -> Message | None:
    """The message that holds the earlier summary: the last one marked so, else the one with that very text."""
    marked = [message for message in messages if message.is_compact_summary and message.in_conversation]
    if marked:
        return marked[-1]
    wanted = (prior_summary or "").strip()
    if not wanted:
        return None
    return next((message for message in messages if message.role == "user" and wanted in text_of(message)), None)


def text_of(message: Message) -> str:
    """The message's text blocks as one text."""
    texts = [block.get("text") for block in message.blocks() if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def prior_from(text: str) -> Prior:
    """The sections of a summary; a text without the known headings becomes one entry of the first section."""
    body = clean(text[:MAX_PRIOR_CHARS]).replace("&lt;/summary>", "").strip()
    label = _LABEL.search(body.replace("&lt;summary>", "<summary>"))
    found = _headings(body, label.end() if label else 0) or _headings(body, 0)
    if not found:
        return Prior({1: (body,)} if body else {})
    entries: dict[int, tuple[str, ...]] = {}
    for index, heading in enumerate(found):
        stop = found[index + 1].start if index + 1 < len(found) else len(body)
        entries[heading.number] = _entries(body[heading.end : stop].lstrip(" \t:*_"))
    return Prior(entries)


def _headings(body: str, begin: int) -> list[Heading]:
    """The headings in rising order: one inside a quote leads neither backwards nor, being indented, anywhere."""
    known = [heading for heading in headings(body) if heading.start >= begin]
    flush = [heading for heading in known if not body[heading.start].isspace()]
    found: list[Heading] = []
    for heading in flush or known:
        if not found or heading.number > found[-1].number:
            found.append(heading)
    return found


def _entries(text: str) -> tuple[str, ...]:
    rows = text.strip("\n").split("\n")
    bullets = [match for match in map(_BULLET.match, rows) if match]
    depth = min((len(match.group(1)) for match in bullets), default=-1)
    entries: list[list[str]] = []
    for row in rows:
        match = _BULLET.match(row)
        if (match and len(match.group(1)) == depth) or _RULE.match(row):
            entries.append([row[match.end() :] if match else row.strip()])
        elif entries:
            entries[-1].append(row)
        elif row.strip():
            entries.append([row.strip()])
    texts = ("\n".join(_dedented(entry)).strip() for entry in entries[:MAX_ENTRIES])
    return tuple(entry for entry in texts if entry and entry.strip(".").casefold() not in ("none", "- none"))


def _dedented(rows: list[str]) -> list[str]:
    indents = [len(row) - len(row.lstrip()) for row in rows[1:] if row.strip()]
    depth = min(indents, default=0)
    return [rows[0], *(row[depth:] for row in rows[1:])]
