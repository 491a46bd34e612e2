"""What the user asked for: the first request, the corrections on the way, the newest one (section 1)."""

from __future__ import annotations

from compaction.core.cues import has_cue, sentences
from compaction.summarizers.extraction.excerpts import bullet, excerpt, line
from compaction.summarizers.extraction.items import Item
from compaction.summarizers.extraction.prior import Prior
from compaction.summarizers.extraction.timeline import Timeline

FIRST_LABEL = "First request: "
LATEST_LABEL = "Latest request: "
CHANGE_LABEL = "Later correction or change of mind: "
MAX_REQUEST_CHARS = 1_200  # the whole message stands under "All user messages"
SHORT_REQUEST_CHARS = 300
MAX_CHANGE_CHARS = 300
SAME_START_CHARS = 60  # two corrections that begin alike are one, retyped
SCANNED_CHARS = 2_000  # of a message, where a correction stands
MAX_CHANGES = 20


def items(timeline: Timeline, prior: Prior, instructions: str | None) -> list[Item]:
    """Requests and corrections, and what of the caller's instructions could not be followed."""
    words = timeline.wishes()
    carried = [entry for entry in prior.section(1) if not entry.startswith(LATEST_LABEL)]
    found = [Item(bullet(entry), bullet(excerpt(entry, SHORT_REQUEST_CHARS)), weight=1) for entry in carried]
    if words and not carried:
        found.append(_request(FIRST_LABEL, words[0]))
    found.extend(Item(bullet(f"{CHANGE_LABEL}{text}")) for text in changes(words if carried else words[1:]))
    if len(words) > 1 or (words and carried):
        found.append(_request(LATEST_LABEL, words[-1]))
    return [*_unfollowed(instructions), *found]


def changes(words: list[str]) -> list[str]:
    """Messages by which the user corrected the course, long ones by the sentences that do it; the newest few.

    A message typed again with more words after an interruption stands once, as it was at last.
    """
    found: dict[str, str] = {}
    for text in words:
        cues = [sentence for sentence in sentences(text[:SCANNED_CHARS]) if has_cue(sentence, "changes")]
        if cues:
            found[text[:SAME_START_CHARS]] = line(
                text if len(text) <= MAX_CHANGE_CHARS else " ".join(cues), MAX_CHANGE_CHARS
            )
    return list(found.values())[-MAX_CHANGES:]


def _request(label: str, text: str) -> Item:
    full = bullet(f"{label}{excerpt(text, MAX_REQUEST_CHARS)}")
    return Item(full, bullet(f"{label}{excerpt(text, SHORT_REQUEST_CHARS)}"), weight=3)


def _unfollowed(instructions: str | None) -> list[Item]:
    if not instructions or not instructions.strip():
        return []
    asked = excerpt(instructions, MAX_REQUEST_CHARS)
    return [
        Item(
            bullet(f"Instructions for this summary, which an extract without a model cannot follow: {asked}"), weight=1
        )
    ]
