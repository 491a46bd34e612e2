"""What the assistant concluded: its last words on each request, and decisions it gave a reason for (section 5)."""

from __future__ import annotations

from compaction.core.cues import has_cue, sentences
from compaction.summarizers.extraction import commands
from compaction.summarizers.extraction.excerpts import bullet, excerpt, line
from compaction.summarizers.extraction.items import Item
from compaction.summarizers.extraction.prior import Prior
from compaction.summarizers.extraction.timeline import Timeline

REPORT_LABEL = "Reported on "
DECISION_LABEL = "Said on the way: "
EARLIER_WORK_LABEL = "Before this part: "
MAX_REPORT_CHARS = 900  # of the last words of a turn
SHORT_REPORT_CHARS = 260
MIN_REPORT_CHARS = 30  # shorter last words say nothing
MAX_ASKED_CHARS = 70  # of the request that a report answers
SCANNED_TEXT_CHARS = 1_500  # of a text, searched for decisions
SCANNED_CHARS = 100_000  # of all texts, newest first
MAX_DECISIONS = 40
MAX_DECISION_CHARS = 300
MAX_EARLIER_WORK_CHARS = 800
_PASSING = ("Working on: ", "Called ", "Its result was the last thing seen")  # of "Current Work", no news any more
REPORT_WEIGHT = 2


def items(timeline: Timeline, prior: Prior) -> list[Item]:
    """Carried entries, then reports and decisions in order, then commands with their last outcome."""
    carried = [Item(bullet(entry), bullet(line(entry, SHORT_REPORT_CHARS))) for entry in _carried(prior)]
    if timeline.steps:  # new work replaces the "current work" of the earlier summary, which becomes history
        carried.extend(_earlier_work(prior))
    reports = _reports(timeline, prior)
    placed = [*reports, *_decisions(timeline, {place for place, _ in reports})]
    ordered = [item for _, item in sorted(placed, key=lambda pair: pair[0])]
    return [*carried, *ordered, *commands.items(timeline.runs())]


def _carried(prior: Prior) -> list[str]:
    return [entry for entry in prior.section(5) if not entry.startswith("Ran `")]


def _earlier_work(prior: Prior) -> list[Item]:
    entries = [entry for entry in prior.section(8) if not entry.startswith(_PASSING)]
    own = [entry for entry in entries if entry.startswith("Assistant: ")]
    work = own[-1] if own else "\n".join(entries)
    if not work:
        return []
    text = f"{EARLIER_WORK_LABEL}{excerpt(work, MAX_EARLIER_WORK_CHARS)}"
    return [Item(bullet(text), bullet(line(text, SHORT_REPORT_CHARS)))]


def _reports(timeline: Timeline, prior: Prior) -> list[tuple[int, Item]]:
    """The last words before each user message; the current turn's stand under "Current work"."""
    found: list[tuple[int, Item]] = []
    asked, last = next(iter(prior.section(6)[-1:]), ""), -1
    for place, step in enumerate(timeline.steps):
        if step.speaker == "user":
            if last >= 0 and len(timeline.steps[last].text) >= MIN_REPORT_CHARS:
                found.append((last, _report(asked, timeline.steps[last].text)))
            asked, last = step.text, -1
        elif step.speaker == "assistant":
            last = place
    return found


def _report(asked: str, text: str) -> Item:
    topic = f"{REPORT_LABEL}“{line(asked, MAX_ASKED_CHARS)}”: " if asked else ""
    full = bullet(f"{topic}{excerpt(text, MAX_REPORT_CHARS)}")
    return Item(full, bullet(f"{topic}{line(text, SHORT_REPORT_CHARS)}"), weight=REPORT_WEIGHT)


def _decisions(timeline: Timeline, reported: set[int]) -> list[tuple[int, Item]]:
    found: list[tuple[int, Item]] = []
    room = SCANNED_CHARS
    for place, text in reversed(timeline.said("assistant")):
        if room <= 0 or len(found) >= MAX_DECISIONS:
            break
        if place in reported or timeline.steps[place - 1].outcome.failed:
            continue  # it stands under the report or beside the failure that it explains
        part = text[:SCANNED_TEXT_CHARS]
        room -= len(part)
        chosen = [sentence for sentence in sentences(part) if has_cue(sentence, "decisions")]
        if chosen:
            told = part if len(part) <= MAX_DECISION_CHARS else " ".join(chosen)
            found.append((place, Item(bullet(f"{DECISION_LABEL}{line(told, MAX_DECISION_CHARS)}"))))
    return found
