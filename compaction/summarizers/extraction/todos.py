"""The agent's own task list, whichever tool keeps it, and what it promised last (section 7)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from compaction.core.cues import has_cue, sentences
from compaction.core.jsonbytes import Json
from compaction.summarizers.extraction.calls import Call
from compaction.summarizers.extraction.excerpts import bullet, line
from compaction.summarizers.extraction.items import Item
from compaction.summarizers.extraction.outcomes import Outcome
from compaction.summarizers.extraction.prior import Prior
from compaction.summarizers.extraction.timeline import Timeline

IN_PROGRESS, PENDING, DONE = "in progress", "pending", "done"
_STATES = {
    **dict.fromkeys(("in_progress", "inprogress", "active"), IN_PROGRESS),
    **dict.fromkeys(("completed", "complete", "done"), DONE),
    **dict.fromkeys(("cancelled", "canceled", "deleted"), ""),  # no longer a task
}
_TEXT_KEYS = ("content", "step", "subject", "title", "text", "description", "task")
_TASK_ID = re.compile(r"Task #?([\w-]{1,40})")
MAX_TASKS = 60
MAX_TASK_CHARS = 300
MAX_DONE_CHARS = 600  # of the list of finished tasks
SCANNED_CHARS = 4_000  # of the last text, searched for promises
MAX_PROMISES = 5
DONE_LABEL = "Done: "
PROMISE_LABEL = "Announced in the last turn: "
CARRIED_LABEL = "(from the earlier summary) "
STATE_WEIGHTS = {IN_PROGRESS: 4, PENDING: 3}


@dataclass(frozen=True, slots=True)
class Task:
    """One entry of a task list."""

    text: str
    state: str


def tasks(timeline: Timeline) -> list[Task] | None:
    """The newest state of the task list, or None where the session kept none."""
    listed: dict[str, Task] = {}
    seen = False
    for _, call, outcome in timeline.calls():
        if call.kind != "todo" or outcome.verdict in ("failed", "rejected") or not isinstance(call.input, dict):
            continue
        seen = True
        whole = _whole_list(call.input)
        if whole is None:
            _update(listed, call, call.input, outcome)
        else:
            listed = {str(number): task for number, task in enumerate(whole)}
    return [task for task in listed.values() if task.state][:MAX_TASKS] if seen else None


def items(timeline: Timeline, prior: Prior) -> list[Item]:
    """Open tasks first in progress then pending, the finished ones in a line, then promises of the last turn."""
    listed = tasks(timeline)
    if listed is None:
        found = [Item(bullet(entry), bullet(line(entry, MAX_TASK_CHARS)), weight=3) for entry in _carried(prior)]
    else:
        found = _list_items(listed)
    return [*found, *_promises(timeline)]


def _list_items(listed: list[Task]) -> list[Item]:
    found = [
        Item(bullet(f"[{state}] {line(task.text, MAX_TASK_CHARS)}"), weight=STATE_WEIGHTS[state])
        for state in (IN_PROGRESS, PENDING)
        for task in listed
        if task.state == state
    ]
    done = [line(task.text, MAX_TASK_CHARS) for task in listed if task.state == DONE]
    if done:
        text = line("; ".join(done), MAX_DONE_CHARS)
        found.append(Item(bullet(f"{DONE_LABEL}{text}"), bullet(f"{DONE_LABEL}{len(done)} tasks")))
    return found


def _carried(prior: Prior) -> list[str]:
    """Open tasks of the earlier summary; nothing in the transcript says whether they were done since."""
    kept = [entry for entry in prior.section(7) if not entry.startswith((PROMISE_LABEL, DONE_LABEL))]
    return [entry if entry.startswith(CARRIED_LABEL) else f"{CARRIED_LABEL}{entry}" for entry in kept]


def _promises(timeline: Timeline) -> list[Item]:
    start = timeline.turn_start()
    said = [text for place, text in timeline.said("assistant") if place > start]
    if not said:
        return []
    chosen = [sentence for sentence in sentences(said[-1][-SCANNED_CHARS:]) if has_cue(sentence, "promises")]
    promised = [line(sentence, MAX_TASK_CHARS) for sentence in chosen[-MAX_PROMISES:]]
    return [Item(bullet(f"{PROMISE_LABEL}{sentence}"), weight=2) for sentence in promised]


def _whole_list(fields: Mapping[str, Json]) -> list[Task] | None:
    for key in ("todos", "plan", "items", "tasks"):
        rows = fields.get(key)
        if isinstance(rows, list):
            return [Task(_text(row), _state(row)) for row in rows if isinstance(row, dict) and _text(row)]
    return None


def _update(listed: dict[str, Task], call: Call, fields: Mapping[str, Json], outcome: Outcome) -> None:
    """TaskCreate and TaskUpdate name one task each; the id of a new one stands in the result."""
    given = fields.get("taskId", fields.get("task_id", fields.get("id")))
    if given is None:
        match = _TASK_ID.search(outcome.text[:SCANNED_CHARS])
        key = match.group(1) if match else f"new {len(listed)}"
        listed[key] = Task(_text(fields) or call.name, _state(fields))
        return
    known = listed.get(str(given), Task(f"task {given}", PENDING))
    listed[str(given)] = Task(_text(fields) or known.text, _state(fields) if "status" in fields else known.state)


def _text(row: Mapping[str, Json]) -> str:
    return next((row[key] for key in _TEXT_KEYS if isinstance(row.get(key), str) and row[key].strip()), "")


def _state(row: Mapping[str, Json]) -> str:
    state = row.get("status", row.get("state"))
    return _STATES.get(state.casefold().replace("-", "_"), PENDING) if isinstance(state, str) else PENDING
