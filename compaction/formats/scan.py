"""The first reading of a Claude Code log: which rows there are and where, with the counts for the report.

Holds a few hundred bytes per row, whatever the rows hold.
"""

from __future__ import annotations

from collections import Counter
from typing import BinaryIO

from compaction.errors import TooLarge
from compaction.formats.boundaries import Boundary, boundary_of
from compaction.formats.branch import MARKERS, Thread
from compaction.formats.identity import DerivedUuids
from compaction.formats.objects import Found, ObjectReader
from compaction.formats.report import MAX_LISTED, DuplicateRow, Malformed
from compaction.formats.rows import CONVERSATION, ROW_START, RawRow, Row, decode_row, reference, row_facts
from compaction.formats.transcript import Progress

MAX_ROWS = 500_000  # a real row has 4 KB on average, so 2 GB of log; about 0.5 GB of memory at worst
MAX_ROW_TYPES = 50  # real logs have 17


class Scan:
    """What the first reading of a file found."""

    def __init__(self) -> None:
        self.rows: list[Row] = []  # with unique uuids, in file order
        self.boundaries: list[Boundary] = []
        self.objects = 0
        self.sidechain_rows = 0
        self.row_types: Counter[str] = Counter()
        self.duplicates: list[DuplicateRow] = []
        self.duplicate_count = 0
        self._reader = ObjectReader(decode_row, restart=ROW_START, is_whole=lambda row: row.session_id is not None)
        self._identities: dict[bool, tuple[str | None, str | None]] = {}  # by is_sidechain: session id, agent id
        self._lines_by_uuid: dict[str, int] = {}
        self._derived = DerivedUuids()

    @property
    def lines(self) -> int:
        """Lines that are not empty."""
        return self._reader.lines

    @property
    def malformed(self) -> Malformed:
        """The damage."""
        return self._reader.malformed

    def identity(self, thread: Thread) -> tuple[str | None, str | None]:
        """The session id and the agent id that the thread's last rows name."""
        return self._identities.get(thread == "subagent", (None, None))

    def run(self, file: BinaryIO, progress: Progress) -> None:
        """Reads the file from its start. Raises TooLarge when it has more than MAX_ROWS rows."""
        for found in self._reader.read(file):
            self._add(found)
            progress.first(found.offset)

    def _add(self, found: Found[RawRow]) -> None:
        kind = found.value.kind
        self.objects += 1
        self.row_types[kind if kind in self.row_types or len(self.row_types) < MAX_ROW_TYPES else "unknown"] += 1
        self.sidechain_rows += found.value.is_sidechain is True
        uuid = reference(found.value.uuid)
        if uuid is None:
            if kind not in CONVERSATION and kind not in MARKERS:
                return
            uuid = self._derived.next(found.data)
        if uuid in self._lines_by_uuid:
            self._note_duplicate(uuid, kind, found.line)
            return
        self._lines_by_uuid[uuid] = found.line
        self._keep(found, uuid)

    def _keep(self, found: Found[RawRow], uuid: str) -> None:
        if len(self.rows) >= MAX_ROWS:
            raise TooLarge(f"The transcript has more than {MAX_ROWS} rows. Split it by session and import the parts.")
        raw = found.value
        row = row_facts(raw, line=found.line, offset=found.offset, length=len(found.data), uuid=uuid)
        if row.in_conversation:
            session, agent = self._identities.get(row.is_sidechain, (None, None))
            self._identities[row.is_sidechain] = (raw.session_id or session, raw.agent_id or agent)
        if row.kind in MARKERS:
            self.boundaries.append(boundary_of(raw, row, len(self.rows)))
        self.rows.append(row)

    def _note_duplicate(self, uuid: str, kind: str, line: int) -> None:
        self.duplicate_count += 1
        if len(self.duplicates) < MAX_LISTED:
            self.duplicates.append(DuplicateRow(kind, (self._lines_by_uuid[uuid], line)))
