"""The compactions that a Claude Code log records, for the report."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from compaction.formats.branch import Thread, on_thread
from compaction.formats.envelopes import boundary_metadata
from compaction.formats.report import BoundaryFact
from compaction.formats.rows import COMPACT, RawRow, Row


@dataclass(frozen=True, slots=True)
class Boundary:
    """A boundary row as the first reading remembers it; `place` is its index among the rows."""

    row: Row
    place: int
    trigger: str | None
    pre_tokens: int | None
    tokens_saved: int | None
    compacted_tool_ids: int | None


def boundary_of(raw: RawRow, row: Row, place: int) -> Boundary:
    """The boundary in a row of one of the two boundary kinds."""
    facts = boundary_metadata(raw, row)
    cleared = facts.get("compacted_tool_ids")
    return Boundary(
        row=row,
        place=place,
        trigger=facts.get("trigger"),
        pre_tokens=facts.get("pre_tokens"),
        tokens_saved=facts.get("tokens_saved"),
        compacted_tool_ids=None if cleared is None else len(cleared),
    )


def boundary_fact(
    boundary: Boundary, rows: Sequence[Row], uuids: AbstractSet[str], branch: AbstractSet[str]
) -> BoundaryFact:
    """The report's entry. `uuids` are those of all rows, `branch` those of the rows on the branch."""
    row, after = boundary.row, boundary.place + 1
    on_branch = row.uuid in branch
    if row.kind != COMPACT:
        return BoundaryFact(
            kind="micro",
            line=row.line,
            trigger=boundary.trigger,
            pre_tokens=boundary.pre_tokens,
            on_branch=on_branch,
            tokens_saved=boundary.tokens_saved,
            compacted_tool_ids=boundary.compacted_tool_ids,
        )
    summary = next((found for found in rows[after:] if is_summary(found, row)), None)
    return BoundaryFact(
        kind="compact",
        line=row.line,
        trigger=boundary.trigger,
        pre_tokens=boundary.pre_tokens,
        on_branch=on_branch,
        summary_line=summary.line if summary is not None else None,
        summary_chars=summary.content.text_chars if summary is not None and summary.content is not None else None,
        logical_parent_in_file=row.logical_parent_uuid in uuids,
        last_prompt_tokens_before=_last_prompt_tokens(rows[: boundary.place], row),
    )


def is_summary(row: Row, boundary: Row) -> bool:
    """Whether a user row is the summary that the compaction at `boundary` put in place of the history."""
    told = row.is_compact_summary if row.is_compact_summary is not None else _is_text(row)
    return row.kind == "user" and row.parent_uuid == boundary.uuid and told


def _is_text(row: Row) -> bool:
    return row.content is not None and row.content.text_chars is not None


def _last_prompt_tokens(before: Sequence[Row], boundary: Row) -> int | None:
    thread: Thread = "subagent" if boundary.is_sidechain else "main"
    for row in reversed(before):
        if row.usage is not None and not row.is_synthetic and on_thread(row, thread):
            return row.usage.prompt_tokens
    return None
