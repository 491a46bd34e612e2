"""What an import found, joined, left out and skipped. Counts, line numbers and short names only, never content."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast

import msgspec

from compaction.core.jsonbytes import Json
from compaction.formats.turns import TurnFacts

MAX_LISTED = 100  # line numbers and rows named in one list; the counts beside them are complete


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """Lines that are not one JSON object: what was saved from them and what was lost."""

    line_count: int = 0
    lines: tuple[int, ...] = ()
    objects_recovered: int = 0
    chars_lost: int = 0
    oversized_lines: int = 0  # more bytes or JSON values than any row can have; skipped without a look
    invalid_utf8_lines: int = 0  # read with U+FFFD in place of the broken bytes; not malformed for that alone


@dataclass(frozen=True, slots=True)
class DuplicateRow:
    """A row that was written twice; the first one counts."""

    type: str
    lines: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryFact:
    """A compaction or micro-compaction that the file records, in file order and whether on the branch or not."""

    kind: Literal["compact", "micro"]
    line: int
    trigger: str | None
    pre_tokens: int | None
    on_branch: bool
    summary_line: int | None = None
    summary_chars: int | None = None
    logical_parent_in_file: bool | None = None
    last_prompt_tokens_before: int | None = None
    tokens_saved: int | None = None
    compacted_tool_ids: int | None = None  # how many


@dataclass(frozen=True, slots=True, kw_only=True)
class LastUsage:
    """The token counts of the last answer in the file."""

    line: int
    input_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int
    output_tokens: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The facts of one import. `full_history` is the active branch, `current_window` what follows its last boundary."""

    format: str
    thread: Literal["main", "subagent"]
    lines: int  # that are not empty
    objects: int  # rows, with those saved from malformed lines
    row_types: dict[str, int]
    malformed: Malformed
    stored_messages: int  # bodies handed on, compaction markers included
    full_history: TurnFacts
    current_window: TurnFacts
    fragments_merged: int  # rows that join the API message of an earlier row when the session is read
    file_order_messages: int  # turns if rewound ones were not left out
    duplicate_uuid_row_count: int = 0
    duplicate_uuid_rows: tuple[DuplicateRow, ...] = ()
    sidechain_rows_skipped: int = 0
    sidechain_conversation_rows_skipped: int = 0
    synthetic_assistant_rows_dropped: int = 0
    unusable_rows_skipped: int = 0  # user or assistant rows whose content is no content
    off_branch_rows: int = 0
    meta_user_rows: int = 0
    api_error_rows: int = 0
    missing_parents: int = 0  # rows whose parent is not in the file
    starts_mid_chain: bool = False
    boundaries: tuple[BoundaryFact, ...] = field(default=())
    last_usage: LastUsage | None = None

    def to_dict(self) -> dict[str, Json]:
        """The report as plain JSON data."""
        return cast("dict[str, Json]", msgspec.json.decode(msgspec.json.encode(self)))  # tuples become lists
