"""What went wrong and what became of it: failures, the acts that followed, the later run that passed (section 4)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from compaction.summarizers.extraction.calls import Call
from compaction.summarizers.extraction.commands import families, family, steps_of
from compaction.summarizers.extraction.excerpts import bullet, clean, code, line
from compaction.summarizers.extraction.files import changed_paths
from compaction.summarizers.extraction.items import Item
from compaction.summarizers.extraction.outcomes import Outcome, telling_lines
from compaction.summarizers.extraction.prior import Prior
from compaction.summarizers.extraction.timeline import Timeline

MAX_ERROR_LINES = 4  # of one failure
MAX_COMMAND_CHARS = 160
MAX_EXPLANATION_CHARS = 400  # of what the assistant said right after the failure
MAX_FIX_FILES = 6
MAX_RETRIES = 40  # later runs that are looked at for one failure
MAX_STEPS_BETWEEN = 200  # calls between a failure and its end that are searched for changed files
LOOK_AHEAD_STEPS = 2  # how soon the assistant must speak for its words to be about the failure
SHORT_CHARS = 240
STILL_FAILED = "it still failed in the last run"
UNSEEN = "it was not seen to pass afterwards"
_OPEN_END = re.compile(f"(?:{STILL_FAILED}|{UNSEEN})$", re.IGNORECASE)
_FAILED_COMMAND = re.compile(r"`([^`]+)` failed")
UNSOLVED_WEIGHT = 3  # what still fails matters most
SOLVED_WEIGHT = 1


@dataclass(frozen=True, slots=True)
class _Row:
    """A call with its place in the timeline."""

    place: int
    call: Call
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class _Story:
    """A failure by the numbers of its calls: the first, those that failed again, and the one that went through."""

    first: int
    again: tuple[int, ...]
    end: int


def items(timeline: Timeline, prior: Prior) -> list[Item]:
    """Failures in order. A check that fails several times in a row is one entry; so is an edit that does not apply."""
    rows = [_Row(place, call, outcome) for place, call, outcome in timeline.calls()]
    carried = [Item(bullet(entry), bullet(line(entry, SHORT_CHARS))) for entry in _carried(prior, rows)]
    index = _Index(rows)
    found: list[Item] = []
    covered: set[int] = set()
    for number, row in enumerate(rows):
        if row.outcome.verdict == "rejected":
            found.append(_refused(row))
        elif row.outcome.failed and number not in covered:
            later = index.later(number, row.call)
            again = _again(rows, number, later)
            covered.update(again)
            found.append(_failure(timeline, rows, _Story(number, again, _end(rows, later))))
    return [*carried, *found]


class _Index:
    """Finds the later calls that do the same thing again; each list is built once, so a long session stays linear."""

    def __init__(self, rows: list[_Row]) -> None:
        self._places: dict[str, list[int]] = {}
        for number, row in enumerate(rows):
            for key in _keys(row.call):
                self._places.setdefault(key, []).append(number)

    def later(self, number: int, call: Call) -> list[int]:
        """The next few calls of the same kind, in order. Of a chain of commands the last one is taken as the check."""
        places = self._places.get(_own_key(call), [])
        start = bisect_right(places, number)
        return places[start : start + MAX_RETRIES]


def _own_key(call: Call) -> str:
    if call.command:
        steps = steps_of(call.command)
        return family(steps[-1]) if steps else ""
    return f"{call.kind} {call.path or line(call.gist, MAX_COMMAND_CHARS)}"


def _keys(call: Call) -> frozenset[str]:
    """What a call that went through proves: every command of its chain passed."""
    return families(call.command) if call.command else frozenset({_own_key(call)})


def _end(rows: list[_Row], later: list[int]) -> int:
    """The first later call that went through; past all of them when none did."""
    return next((place for place in later if rows[place].outcome.verdict == "ok"), len(rows))


def _again(rows: list[_Row], number: int, later: list[int]) -> tuple[int, ...]:
    """Later failures of the same check before it went through."""
    key, end = _own_key(rows[number].call), _end(rows, later)
    return tuple(at for at in later if at < end and rows[at].outcome.failed and _own_key(rows[at].call) == key)


def _failure(timeline: Timeline, rows: list[_Row], story: _Story) -> Item:
    row, solved = rows[story.first], story.end < len(rows)
    times = f" {len(story.again) + 1}×" if story.again else ""
    parts = [f"{_act(row.call)} failed{times}:{_error(row.outcome)}"]
    if story.again and _error(rows[story.again[-1]].outcome) != _error(row.outcome):
        parts.append(f"Last failure:{_error(rows[story.again[-1]].outcome)}")
    parts.extend(_explanation(timeline, row.place))
    parts.append(_ending(rows, story))
    weight = UNSOLVED_WEIGHT if not solved else SOLVED_WEIGHT if row.call.command else 0
    return Item(bullet("\n".join(parts)), bullet(line(f"{parts[0]} — {parts[-1]}", SHORT_CHARS)), weight=weight)


def _carried(prior: Prior, rows: list[_Row]) -> list[str]:
    """Entries of an earlier summary; a failure that it left open is closed by a run that went through since."""
    proven = {key: row.call.command for row in rows if row.outcome.verdict == "ok" for key in _keys(row.call)}
    return [_brought_up_to_date(entry, proven) for entry in prior.section(4)]


def _brought_up_to_date(entry: str, proven: Mapping[str, str]) -> str:
    command = _FAILED_COMMAND.match(entry)
    steps = steps_of(command.group(1)) if command else []
    later = proven.get(family(steps[-1])) if steps else None
    return _OPEN_END.sub(lambda _: f"later {code(later, MAX_COMMAND_CHARS)} passed", entry) if later else entry


def _act(call: Call) -> str:
    if call.command:
        return code(call.command, MAX_COMMAND_CHARS)
    target = call.path or call.gist
    return f"{line(call.name, 60)} {code(target, MAX_COMMAND_CHARS)}" if target else line(call.name, 60)


def _error(outcome: Outcome) -> str:
    rows = telling_lines(clean(outcome.text), MAX_ERROR_LINES)
    return f" {rows[0]}" if len(rows) == 1 else "".join(f"\n| {row}" for row in rows) or " no message"


def _explanation(timeline: Timeline, place: int) -> list[str]:
    for step in timeline.steps[place + 1 : place + 1 + LOOK_AHEAD_STEPS]:
        if step.speaker == "assistant":
            return [f"Assistant: {line(step.text, MAX_EXPLANATION_CHARS)}"]
        if step.speaker == "user":
            break
    return []


def _ending(rows: list[_Row], story: _Story) -> str:
    call, solved = rows[story.first].call, story.end < len(rows)
    between = rows[max(story.first + 1, story.end - MAX_STEPS_BETWEEN) : story.end]
    fixes = changed_paths([(row.call, row.outcome) for row in between])
    shown = ", ".join(code(path, MAX_COMMAND_CHARS) for path in fixes[:MAX_FIX_FILES])
    more = f" and {len(fixes) - MAX_FIX_FILES} more" if len(fixes) > MAX_FIX_FILES else ""
    changed = f"Then changed {shown}{more}; " if fixes and call.command else ""
    if not solved:
        state = STILL_FAILED if story.again else UNSEEN
    elif call.command:
        state = f"later {code(rows[story.end].call.command, MAX_COMMAND_CHARS)} passed"
    else:
        state = "a later try went through"
    return changed + (state if changed else state[:1].upper() + state[1:])


def _refused(row: _Row) -> Item:
    gist = f" ({line(row.call.new_text or row.call.gist, 120)})" if row.call.new_text or row.call.gist else ""
    return Item(bullet(f"The user refused {_act(row.call)}{gist}; do not repeat it unasked."), weight=SOLVED_WEIGHT)
