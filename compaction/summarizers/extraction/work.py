"""Where the session stands: the newest words and calls (section 8), and what should come next (section 9)."""

from __future__ import annotations

from compaction.summarizers.extraction import todos
from compaction.summarizers.extraction.calls import Call
from compaction.summarizers.extraction.commands import verdict
from compaction.summarizers.extraction.excerpts import bullet, clean, code, excerpt, line, quoted
from compaction.summarizers.extraction.files import edit_gist
from compaction.summarizers.extraction.items import Item
from compaction.summarizers.extraction.outcomes import Outcome, telling_lines
from compaction.summarizers.extraction.prior import Prior
from compaction.summarizers.extraction.timeline import Timeline

WORK_LABEL = "Working on: "
CALL_LABEL = "Called "
LAST_TEXTS = 3  # of the assistant, in the current turn
MAX_TEXT_CHARS = 1_500  # of the newest of them
MAX_OLDER_TEXT_CHARS = 300
LAST_CALLS = 10
MAX_REQUEST_CHARS = 500
MAX_WISH_CHARS = 300
MAX_NAME_CHARS = 60  # of a tool's name
MAX_TARGET_CHARS = 200
MAX_RESULT_LINES = 12  # of the last result, when the turn ended on it
MAX_RESULT_CHARS = 1_500
REQUEST_WEIGHT, TEXT_WEIGHT, RESULT_WEIGHT = 5, 4, 3


def items(timeline: Timeline, prior: Prior) -> list[Item]:
    """The request in hand, then the last texts and calls of the current turn in their order, then the last result."""
    if not timeline.steps:
        return [Item(bullet(entry), bullet(line(entry, MAX_OLDER_TEXT_CHARS))) for entry in prior.section(8)]
    start = timeline.turn_start()
    found: list[Item] = []
    first = timeline.steps[start]
    if first.speaker == "user":
        text = f"{WORK_LABEL}“{excerpt(first.text, MAX_REQUEST_CHARS)}”"
        found.append(Item(bullet(text), bullet(line(text, MAX_OLDER_TEXT_CHARS)), weight=REQUEST_WEIGHT))
    return [*found, *_last_steps(timeline, start), *_last_result(timeline)]


def next_step(timeline: Timeline, prior: Prior) -> list[Item]:
    """What the transcript itself says comes next, in quotes; nothing is made up."""
    if not timeline.steps:
        return [Item(bullet(entry), bullet(line(entry, MAX_OLDER_TEXT_CHARS))) for entry in prior.section(9)]
    last = timeline.steps[-1]
    request = timeline.steps[timeline.turn_start()]
    wish = f"“{line(request.text, MAX_WISH_CHARS)}”" if request.speaker == "user" else ""
    found = [Item(bullet(f"Task in progress: “{task}”."), weight=1) for task in _tasks_in_progress(timeline)]
    if last.speaker == "user":
        state = "The last user message has not been answered yet."
    elif last.call is not None:
        state = _open_turn(last.call, last.outcome)
    else:
        state = "The assistant had answered the last request; go on only with open tasks or with what the user asks."
    text = bullet(state)
    return [*found, Item(f"{text} Last request: {wish}" if wish else text, text, weight=2)]


def _open_turn(call: Call, outcome: Outcome) -> str:
    state = {"open": "had no result yet", "failed": "had just failed", "rejected": "had just been refused by the user"}
    act = f"{line(call.name, MAX_NAME_CHARS)} {_target(call)}".rstrip()
    return f"The turn was not finished: {act} {state.get(outcome.verdict, 'had just succeeded')}."


def _tasks_in_progress(timeline: Timeline) -> list[str]:
    tasks = todos.tasks(timeline) or ()
    return [line(task.text, todos.MAX_TASK_CHARS) for task in tasks if task.state == todos.IN_PROGRESS]


def _last_steps(timeline: Timeline, start: int) -> list[Item]:
    texts = [place for place, _ in timeline.said("assistant") if place > start][-LAST_TEXTS:]
    calls = [place for place, call, _ in timeline.calls() if place > start and call.kind != "todo"][-LAST_CALLS:]
    found: list[Item] = []
    for place in sorted([*texts, *calls]):
        step = timeline.steps[place]
        if step.call is not None:
            found.append(_call_item(step.call, step.outcome))
        else:
            limit = MAX_TEXT_CHARS if place == texts[-1] else MAX_OLDER_TEXT_CHARS
            full = bullet(f"Assistant: {excerpt(step.text, limit)}")
            found.append(Item(full, bullet(f"Assistant: {line(step.text, MAX_OLDER_TEXT_CHARS)}"), weight=TEXT_WEIGHT))
    return found


def _call_item(call: Call, outcome: Outcome) -> Item:
    if call.changes_files and outcome.verdict == "ok":
        ending = edit_gist(call)
    elif call.command or outcome.verdict != "ok":
        ending = verdict(outcome)
    else:
        ending = "ok"
    act = f"{line(call.name, MAX_NAME_CHARS)} {_target(call)}".rstrip()
    return Item(bullet(f"{CALL_LABEL}{act}: {ending}"))


def _target(call: Call) -> str:
    target = call.command or call.path or call.gist
    return code(target, MAX_TARGET_CHARS) if target else ""


def _last_result(timeline: Timeline) -> list[Item]:
    last = timeline.steps[-1]
    if last.call is None or last.outcome.verdict == "open" or not last.outcome.text.strip():
        return []
    if last.outcome.failed:
        shown = "\n".join(f"| {row}" for row in telling_lines(clean(last.outcome.text), MAX_RESULT_LINES))
    else:
        shown = quoted(last.outcome.text, MAX_RESULT_LINES, MAX_RESULT_CHARS)
    return [Item(bullet(f"Its result was the last thing seen:\n{shown}"), weight=RESULT_WEIGHT)]
