"""Standing rules that the user laid down ("never", "always", "do not", "only"), word for word."""

from __future__ import annotations

import re

from compaction.core.constraints import is_constraint
from compaction.core.cues import sentences
from compaction.summarizers.extraction.excerpts import bullet, clean
from compaction.summarizers.extraction.items import Item
from compaction.summarizers.extraction.prior import Prior
from compaction.summarizers.extraction.timeline import Timeline

LABEL = "Constraint: "  # `core.constraints` pins the lines that begin so
SCANNED_MESSAGE_CHARS = 20_000  # of one message; further on it is pasted data
SCANNED_CHARS = 200_000  # of all user words, newest first, so that a huge chat stays cheap
MAX_CONSTRAINTS = 50  # as many as `core.constraints` pins
WEIGHT = 2  # a rule stays longer than a wish
_LABELLED = re.compile(r"[*_]{0,2}(constraint|withdrawn):[*_]{0,2}\s{0,8}(\S.*)", re.IGNORECASE | re.DOTALL)


def constraints(timeline: Timeline, prior: Prior) -> list[str]:
    """The rules, oldest first, each once; those of an earlier summary stand first, unless it calls them withdrawn."""
    found: list[str] = []
    room = SCANNED_CHARS
    for _, text in reversed(timeline.said("user")):
        if room <= 0:
            break
        part = text[: min(SCANNED_MESSAGE_CHARS, room)]
        room -= len(part)
        found.extend(clean(sentence) for sentence in reversed(sentences(part)) if is_constraint(sentence))
    return _unique([*found, *reversed(_earlier(prior))])[:MAX_CONSTRAINTS][::-1]


def is_label(entry: str) -> bool:
    """Whether an entry of an earlier summary states or withdraws a rule."""
    return _LABELLED.fullmatch(entry) is not None


def items(timeline: Timeline, prior: Prior) -> list[Item]:
    """The rules as list entries."""
    return [Item(bullet(f"{LABEL}{rule}"), weight=WEIGHT) for rule in constraints(timeline, prior)]


def _earlier(prior: Prior) -> list[str]:
    rules: dict[str, str] = {}
    for match in map(_LABELLED.fullmatch, prior.section(6)):
        if match and match.group(1).lower() == "constraint":
            rules.setdefault(_key(match.group(2)), match.group(2))
        elif match:
            rules.pop(_key(match.group(2)), None)
    return list(rules.values())


def _key(rule: str) -> str:
    return " ".join(rule.casefold().split()).strip(".!\"'`“”")


def _unique(rules: list[str]) -> list[str]:
    seen: dict[str, str] = {}
    for rule in rules:
        seen.setdefault(_key(rule), rule)
    return list(seen.values())
