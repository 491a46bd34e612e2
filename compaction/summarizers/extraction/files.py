"""The files a session touched: what was done to each, and what its last edit says (section 3)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from compaction.summarizers.extraction.calls import Call
from compaction.summarizers.extraction.excerpts import bullet, code, excerpt, line, quoted
from compaction.summarizers.extraction.items import Item
from compaction.summarizers.extraction.outcomes import Outcome
from compaction.summarizers.extraction.prior import Prior
from compaction.summarizers.extraction.timeline import Timeline

READ_LABEL = "Only read: "
EARLIER_LABEL = "Before: "  # what an earlier summary said about a file
_SYMBOL = re.compile(
    r"^[ \t]{0,12}(?:(?:export|default|pub|public|private|protected|static|async|abstract|final)\s+){0,4}"
    r"(?:def|class|func|fn|function|interface|type|struct|enum|trait|impl|const)\s+(?:\([^)\n]{0,80}\)\s*)?([A-Za-z_]\w{0,80})",
    re.MULTILINE,
)
_COUNTS = re.compile(r"^`([^`\n]+)`: (?:new file, )?((?:(?:read|edited|written) \d+×(?:, )?)+)")
_COUNT = re.compile(r"(read|edited|written) (\d+)×")
_PATH = re.compile(r"`([^`\n]+)`")
_NAMED = re.compile(r"^[^`*]{0,40}(?:`|\*\*`?)([\w@~./\\ -]{0,300}(?:/|\.\w)[\w@~./\\-]{0,300})`?(?:`|\*\*)?")
_IMPORTING = ("import ", "from ", "use ", "#include", "require", "package ")
SHOWN_EDITS = 3  # of a file, the newest that say more than imports
MAX_SNIPPET_LINES = 14  # of the newest one; older ones get what is left of MAX_SNIPPETS_LINES
MAX_SNIPPETS_LINES = 24
MAX_SNIPPET_CHARS = 1_200
SCANNED_EDIT_CHARS = 20_000  # of an edit, searched for names
MAX_SYMBOLS = 8
MAX_CARRIED_CHARS = 600  # of an earlier summary's words on a file that was touched again
SHORT_CHARS = 200  # of an entry that has to give way
FEW_READ_FILES = 10  # what is left of their list where there is no room
MAX_READ_FILES = 80  # named as only read
MAX_PATH_CHARS = 300


@dataclass(slots=True)
class _Touched:
    """What happened to one file, counted while walking the calls."""

    counts: dict[str, int] = field(default_factory=lambda: {"read": 0, "edited": 0, "written": 0})
    created: bool = False
    last_change: Call | None = None
    failed_last: bool = False
    symbols: dict[str, None] = field(default_factory=dict)
    edits: deque[str] = field(default_factory=lambda: deque(maxlen=SHOWN_EDITS))
    carried: str = ""  # what an earlier summary said, shortened, for a file that was changed again
    entry: str = ""  # its whole entry there

    @property
    def changed(self) -> bool:
        return self.last_change is not None or self.counts["edited"] + self.counts["written"] > 0

    def learn(self, call: Call) -> None:
        """Bring names and shown edits up to date: what a later change replaced must not stand there as current."""
        new = call.new_text[:SCANNED_EDIT_CHARS]
        if call.kind == "write":
            self.symbols.clear()
            self.edits.clear()
        for name in _SYMBOL.findall(call.old_text[:SCANNED_EDIT_CHARS]):
            self.symbols.pop(name, None)
        self.symbols.update(dict.fromkeys(_SYMBOL.findall(new)))
        kept, shown = _merged(self.edits, call.old_text, new)
        self.edits = deque(kept if shown or _only_imports(new) else [*kept, new], maxlen=SHOWN_EDITS)


def _merged(edits: Iterable[str], old: str, new: str) -> tuple[list[str], bool]:
    """The texts shown so far with an edit carried out on them, and whether a short one among them shows it."""
    kept: list[str] = []
    shown = False
    for text in edits:
        if old and old in text and old in new:  # put in beside it: the text shown still stands
            kept.append(text)
        elif old and old in text:
            kept.append(text.replace(old, new, 1))
            shown = shown or kept[-1].count("\n") < MAX_SNIPPET_LINES
        elif text not in old:
            kept.append(text)
    return kept, shown


def items(timeline: Timeline, prior: Prior) -> list[Item]:
    """Changed files, oldest change first, with the end state of the last edit; then one entry for those only read."""
    calls = [(path, call, outcome) for _, call, outcome in timeline.calls() for path in call.paths]
    touched, free_text = _carried(prior, {path for path, _, _ in calls})
    for path, call, outcome in calls:
        _count(touched, path, call, outcome)
    changed = [(path, file) for path, file in touched.items() if file.changed or file.carried]
    read = [path for path, file in touched.items() if not file.changed and not file.carried]
    return [*free_text, *(_changed_item(path, file) for path, file in changed), *_read_items(read)]


def changed_paths(steps: Sequence[tuple[Call, Outcome]]) -> list[str]:
    """The files that these calls changed, each once."""
    return list(
        dict.fromkeys(
            path for call, outcome in steps if call.changes_files and outcome.verdict == "ok" for path in call.paths
        )
    )


def edit_gist(call: Call) -> str:
    """In a few words what an edit did: how many lines gave way to how many."""
    new = call.new_text.count("\n") + 1 if call.new_text else 0
    if call.kind == "write":
        return f"whole file written, {new} lines"
    old = call.old_text.count("\n") + 1 if call.old_text else 0
    if not old and not new:
        return "patched"
    return f"{_lines(old)} replaced by {new}" if old else f"{_lines(new)} put in"


def _count(touched: dict[str, _Touched], path: str, call: Call, outcome: Outcome) -> None:
    file = touched.get(path)
    if file is None:
        file = touched[path] = _Touched()
    if outcome.verdict != "ok":
        file.failed_last = call.changes_files
        return
    if call.kind == "read":
        file.counts["read"] += 1
        return
    file.created = file.created or (call.kind == "write" and not any(file.counts.values()) and not file.carried)
    file.counts["written" if call.kind == "write" else "edited"] += 1
    file.last_change, file.failed_last = call, False
    file.learn(call)
    touched[path] = touched.pop(path)  # the newest change moves to the end


def _changed_item(path: str, file: _Touched) -> Item:
    done = ", ".join(f"{verb} {count}×" for verb, count in file.counts.items() if count)
    head = f"{code(path, MAX_PATH_CHARS)}: {'new file, ' if file.created else ''}{done}"
    last = file.last_change
    if last is None:
        return Item(bullet(file.entry), bullet(line(file.entry, SHORT_CHARS)))  # not touched since the earlier summary
    head += f"; last change: {edit_gist(last)}"
    if file.failed_last:
        head += "; a later edit of it did not go through"
    names = list(file.symbols)[-MAX_SYMBOLS:]
    named = f"\nDefines or changes: {', '.join(f'`{name}`' for name in names)}" if names else ""
    return Item(bullet(f"{head}{named}{_more(file)}{_snippets(file)}"), bullet(f"{head}{named}"), weight=1)


def _snippets(file: _Touched) -> str:
    """The newest edits that say something, oldest first, a row of dots between them."""
    shown: list[str] = []
    room = MAX_SNIPPETS_LINES
    for text in reversed(file.edits):
        if room <= 1:
            break
        shown.append(quoted(text, min(room, MAX_SNIPPET_LINES), MAX_SNIPPET_CHARS))
        room -= shown[-1].count("\n") + 1
    return "".join(f"\n{snippet}" for snippet in "\n| ⋮\n".join(reversed(shown)).split("\n") if snippet)


def _only_imports(text: str) -> bool:
    rows = text[:SCANNED_EDIT_CHARS].split("\n")
    return all(not row.strip() or row.strip().startswith(_IMPORTING) for row in rows)


def _more(file: _Touched) -> str:
    return f"\n{excerpt(file.carried, MAX_CARRIED_CHARS)}" if file.carried else ""


def _read_items(paths: list[str]) -> list[Item]:
    if not paths:
        return []
    shown = [code(path, MAX_PATH_CHARS) for path in paths[-MAX_READ_FILES:]]
    more = f", and {len(paths) - len(shown)} more" if len(paths) > len(shown) else ""
    few = shown[-FEW_READ_FILES:]
    rest = f", and {len(paths) - len(few)} more" if len(paths) > len(few) else ""
    return [Item(bullet(f"{READ_LABEL}{', '.join(shown)}{more}"), bullet(f"{READ_LABEL}{', '.join(few)}{rest}"))]


def _carried(prior: Prior, paths: AbstractSet[str]) -> tuple[dict[str, _Touched], list[Item]]:
    """Files of an earlier summary by path, and its entries that name no file."""
    touched: dict[str, _Touched] = {}
    free: list[Item] = []
    for entry in prior.section(3):
        head = entry.split("\n", 1)[0]
        named = _NAMED.search(head)
        if entry.startswith(READ_LABEL):
            touched.update((path, _Touched()) for path in _PATH.findall(entry) if path not in touched)
        elif named is None:
            free.append(Item(bullet(entry), bullet(line(entry, SHORT_CHARS))))
        else:
            _carry(touched.setdefault(_same_file(named.group(1), paths), _Touched()), entry)
    return touched, free


def _carry(file: _Touched, entry: str) -> None:
    counted = _COUNTS.match(entry)
    file.entry = f"{file.entry}\n{entry}".strip()
    if counted:
        file.counts.update((verb, int(count)) for verb, count in _COUNT.findall(counted.group(2)))
        file.created = ": new file, " in counted.group(0)
        file.carried = _after_counts(entry, counted.end())
    else:
        file.carried = f"{file.carried}\n{entry}".strip()


def _same_file(name: str, paths: AbstractSet[str]) -> str:
    """The full path that a shorter name in a summary means, when only one can be meant."""
    fitting = [path for path in paths if path == name or path.endswith(f"/{name}")]
    return fitting[0] if len(fitting) == 1 else name


def _after_counts(entry: str, end: int) -> str:
    rest = entry[end:].lstrip("; \n").split("\n|", 1)[0].removeprefix(EARLIER_LABEL).split(f"\n{EARLIER_LABEL}", 1)[0]
    return f"{EARLIER_LABEL}{excerpt(rest, MAX_CARRIED_CHARS)}" if rest else ""


def _lines(count: int) -> str:
    return f"{count} line" if count == 1 else f"{count} lines"
