"""Reads a Claude Code session log (JSONL): the conversation on its active branch, one message per row.

Two readings of a seekable file. The first decides (rows, duplicates, branch, report), the second cuts the chosen
rows out by offset, so that memory holds facts about rows and never the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from compaction.errors import InvalidRequest
from compaction.formats.boundaries import boundary_fact, is_summary
from compaction.formats.branch import MARKERS, Branch, Thread, active_branch, on_thread, thread_of
from compaction.formats.envelopes import boundary_body, message_body
from compaction.formats.identity import is_session_id, short_digest
from compaction.formats.lines import readable
from compaction.formats.report import MAX_LISTED, ImportReport, LastUsage
from compaction.formats.rows import COMPACT, Row, decode_row
from compaction.formats.scan import Scan
from compaction.formats.transcript import OnProgress, Progress, Transcript, size_of
from compaction.formats.turns import Entry, turn_facts, turns

FORMAT = "claude_code"


def read(file: BinaryIO, *, on_progress: OnProgress | None = None) -> Transcript:
    """The session in a seekable binary file, which must stay open until its bodies have been read.

    Raises InvalidRequest when no row of it is a message (never an empty session), TooLarge when it has too many rows.
    """
    progress = Progress(size_of(file), on_progress)
    scan = Scan()
    scan.run(file, progress)
    thread = thread_of(scan.rows)
    branch = active_branch(scan.rows, thread)
    stored = [row for row in branch.rows if row.is_stored or row.kind in MARKERS]
    if not any(row.is_stored for row in stored):
        raise InvalidRequest("The transcript holds no conversation: it has no user or assistant message to import.")
    named, session_id = _session_id(scan, thread)
    return Transcript(
        session_id=session_id,
        named_by_file=named,
        model=next((row.model for row in reversed(stored) if row.kind == "assistant" and row.model), None),
        left_uuids=_left(scan.rows, thread, branch),
        report=_Facts(scan, thread, branch).report(len(stored)),
        open_bodies=lambda: _bodies(file, stored, progress),
    )


def _left(rows: Sequence[Row], thread: Thread, branch: Branch) -> tuple[str, ...]:
    """The thread's rows that may have been stored while they were on the branch, and are no more."""
    on_branch = {row.uuid for row in branch.rows}
    told = (row for row in rows if row.in_conversation or row.kind in MARKERS)
    return tuple(row.uuid for row in told if on_thread(row, thread) and row.uuid not in on_branch)


def _session_id(scan: Scan, thread: Thread) -> tuple[bool, str]:
    """The id in the rows, for a sub-agent's file with the agent's; a digest where it is no id that we take."""
    session, agent = scan.identity(thread)
    first = next(row for row in scan.rows if row.in_conversation and on_thread(row, thread))
    digest = short_digest([first.uuid.encode()])
    if thread == "subagent" and session is not None:
        session = f"{session}:agent-{agent or digest}"
    if session is not None and is_session_id(session):
        return True, session
    return False, f"import-{digest}"


def _bodies(file: BinaryIO, stored: Sequence[Row], progress: Progress) -> Iterator[bytes]:
    boundary: Row | None = None
    for row in stored:
        file.seek(row.offset)
        raw = decode_row(readable(file.read(row.length))[0])
        if raw is None or raw.kind != row.kind:
            raise InvalidRequest("The transcript has changed while it was being imported. Import it again.")
        progress.cut(row.offset)
        if row.kind in MARKERS:
            boundary = row if row.kind == COMPACT else boundary
            yield boundary_body(raw, row)
            continue
        summary = row.is_compact_summary is True or (boundary is not None and is_summary(row, boundary))
        yield message_body(raw, row, is_compact_summary=summary)
    progress.done()


def _entries(rows: Iterable[Row]) -> list[Entry]:
    return [Entry(row.kind, row.message_id, row.content) for row in rows if row.is_stored and row.content is not None]


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the report is made from."""

    scan: Scan
    thread: Thread
    branch: Branch

    def report(self, stored_messages: int) -> ImportReport:
        scan, told = self.scan, self._told()
        uuids = {row.uuid for row in scan.rows}
        on_branch = {row.uuid for row in self.branch.rows}
        full = _entries(self.branch.rows)
        fragments = [entry.api_message_id for entry in full if entry.role == "assistant" and entry.api_message_id]
        return ImportReport(
            format=FORMAT,
            thread="subagent" if self.thread == "subagent" else "main",
            lines=scan.lines,
            objects=scan.objects,
            row_types=dict(sorted(scan.row_types.items())),
            malformed=scan.malformed,
            stored_messages=stored_messages,
            full_history=turn_facts(full, rows_used=_conversation_rows(self.branch.rows)),
            current_window=turn_facts(_entries(self.branch.window), rows_used=_conversation_rows(self.branch.window)),
            fragments_merged=len(fragments) - len(set(fragments)),
            file_order_messages=len(turns(_entries(told))),
            duplicate_uuid_row_count=scan.duplicate_count,
            duplicate_uuid_rows=tuple(scan.duplicates),
            sidechain_rows_skipped=scan.sidechain_rows if self.thread == "main" else 0,
            sidechain_conversation_rows_skipped=0 if self.thread == "subagent" else self._sidechain_conversation(),
            synthetic_assistant_rows_dropped=sum(1 for row in told if row.is_synthetic),
            unusable_rows_skipped=sum(1 for row in told if not row.is_stored and not row.is_synthetic),
            off_branch_rows=self.branch.off_branch_rows,
            meta_user_rows=sum(1 for row in told if row.kind == "user" and row.is_meta),
            api_error_rows=scan.row_types["system:api_error"],
            missing_parents=sum(1 for row in scan.rows if row.parent_uuid is not None and row.parent_uuid not in uuids),
            starts_mid_chain=self.branch.starts_mid_chain,
            boundaries=tuple(
                boundary_fact(boundary, scan.rows, uuids, on_branch) for boundary in scan.boundaries[:MAX_LISTED]
            ),
            last_usage=_last_usage(told),
        )

    def _told(self) -> list[Row]:
        """The thread's user and assistant rows in file order."""
        return [row for row in self.scan.rows if row.in_conversation and on_thread(row, self.thread)]

    def _sidechain_conversation(self) -> int:
        return sum(1 for row in self.scan.rows if row.in_conversation and row.is_sidechain)


def _conversation_rows(rows: Iterable[Row]) -> int:
    return sum(1 for row in rows if row.in_conversation)


def _last_usage(told: Sequence[Row]) -> LastUsage | None:
    row = next((row for row in reversed(told) if row.usage is not None and not row.is_synthetic), None)
    if row is None or row.usage is None:
        return None
    return LastUsage(line=row.line, prompt_tokens=row.usage.prompt_tokens, **row.usage.to_dict())
