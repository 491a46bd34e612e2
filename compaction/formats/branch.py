"""Which rows of a Claude Code log are the conversation that its user sees now.

A log is append-only: rewound turns, interrupted starts and sub-agents stay in it. The active branch is what the last
row can reach over its parents, together with what streaming and parallel tool calls put beside that path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from compaction.formats.rows import COMPACT, MICROCOMPACT, Row

Thread = Literal["main", "subagent", "none"]
MARKERS = frozenset({COMPACT, MICROCOMPACT})


@dataclass(frozen=True, slots=True)
class Branch:
    """The active branch: its user, assistant and boundary rows in file order, and what stayed beside it."""

    rows: tuple[Row, ...]
    off_branch_rows: int
    starts_mid_chain: bool  # the path from the last row came to a parent that is not in the file

    @property
    def window(self) -> tuple[Row, ...]:
        """What follows the last compact boundary; all of it without one."""
        for index in range(len(self.rows) - 1, -1, -1):
            if self.rows[index].kind == COMPACT:
                return self.rows[index + 1 :]
        return self.rows


def thread_of(rows: Iterable[Row]) -> Thread:
    """Whose conversation the file is: main, a sub-agent's (all its messages are sidechain rows), or nobody's."""
    sidechains = {row.is_sidechain for row in rows if row.in_conversation}
    if False in sidechains:
        return "main"
    return "subagent" if sidechains else "none"


def on_thread(row: Row, thread: Thread) -> bool:
    """Whether the row is one of the thread's own."""
    return row.is_sidechain == (thread == "subagent")


def active_branch(rows: Sequence[Row], thread: Thread) -> Branch:
    """The branch of `rows` (file order, uuids unique) that ends in the thread's last user or assistant row."""
    path = _Path(rows, thread)
    chosen = path.walk()
    _add_fragments(rows, thread, chosen)
    _add_results(rows, thread, chosen)
    kept = tuple(
        row for index, row in enumerate(rows) if index in chosen and (row.in_conversation or row.kind in MARKERS)
    )
    told = sum(1 for row in rows if row.in_conversation and on_thread(row, thread))
    return Branch(kept, told - sum(1 for row in kept if row.in_conversation), path.met_gap)


class _Path:
    """The walk from the last row to the root."""

    def __init__(self, rows: Sequence[Row], thread: Thread) -> None:
        self.rows = rows
        self.thread: Thread = thread
        self.places = {row.uuid: index for index, row in enumerate(rows)}
        self.seen: set[int] = set()
        self.met_gap = False
        self.before = self._rows_before()

    def _rows_before(self) -> list[int]:
        """For each row the thread's row before it, -1 where there is none."""
        before, last = [], -1
        for index, row in enumerate(self.rows):
            before.append(last)
            if on_thread(row, self.thread):
                last = index
        return before

    def walk(self) -> set[int]:
        index = self._last()
        while index >= 0:
            self.seen.add(index)
            index = self._parent(index)
        return self.seen

    def _last(self) -> int:
        for index in range(len(self.rows) - 1, -1, -1):
            if self.rows[index].in_conversation and on_thread(self.rows[index], self.thread):
                return index
        return -1

    def _parent(self, index: int) -> int:
        row = self.rows[index]
        parent = row.parent_uuid or row.logical_parent_uuid
        if parent is None:
            return self._unseen_before(index) if row.unlinked else -1
        place = self.places.get(parent)
        self.met_gap = self.met_gap or place is None
        if place is None or place in self.seen or not on_thread(self.rows[place], self.thread):
            return self._unseen_before(index)
        return place

    def _unseen_before(self, index: int) -> int:
        """The next row towards the file's start; remembers the way, so that a circle of parents cannot make it slow."""
        passed = [index]
        while (place := self.before[passed[-1]]) in self.seen:
            passed.append(place)
        for step in passed:
            self.before[step] = place
        return place


def _add_fragments(rows: Sequence[Row], thread: Thread, chosen: set[int]) -> None:
    """Adds the assistant rows whose API message is on the branch: streamed pieces and parallel tool calls."""
    ids = {rows[index].message_id for index in chosen} - {None}
    chosen.update(i for i, row in enumerate(rows) if row.message_id in ids and on_thread(row, thread))


def _add_results(rows: Sequence[Row], thread: Thread, chosen: set[int]) -> None:
    """Adds the tool results whose call is on the branch."""
    uuids = {rows[index].uuid for index in chosen}
    for index, row in enumerate(rows):
        if row.kind != "user" or row.content is None or not row.content.tool_results or not on_thread(row, thread):
            continue
        if (row.source_uuid or row.parent_uuid) in uuids:
            chosen.add(index)
