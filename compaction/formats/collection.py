"""The messages of a file that has one per object: which are kept, and the facts for the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from compaction.core.jsonbytes import Json
from compaction.core.messages import ROLES, Usage
from compaction.errors import TooLarge
from compaction.formats.content import ContentFacts
from compaction.formats.identity import DerivedUuids, short_digest
from compaction.formats.plain import PlainMessage, plain_message
from compaction.formats.report import MAX_LISTED, DuplicateRow, ImportReport, LastUsage, Malformed
from compaction.formats.turns import Entry, turn_facts, turns

MAX_MESSAGES = 500_000  # like scan.MAX_ROWS: about 0.5 GB of memory at worst


class Kept(msgspec.Struct, frozen=True, gc=False):
    """What stays in memory of a message. `place` is where its object begins in the file, or its index in a document."""

    line: int
    place: int
    length: int
    uuid: str
    own_uuid: bool
    role: str
    content: ContentFacts
    in_conversation: bool
    is_boundary: bool
    is_meta: bool
    partial: bool
    api_message_id: str | None
    parent_uuid: str | None
    model: str | None
    usage: Usage | None


class Collection:
    """Messages in file order with unique uuids; the final version of a partial message takes its place."""

    def __init__(self) -> None:
        self.kept: list[Kept] = []
        self.objects = 0
        self.unusable = 0
        self._types: Counter[str] = Counter()
        self._duplicates: list[DuplicateRow] = []
        self._duplicate_count = 0
        self._places: dict[str, int] = {}
        self._derived = DerivedUuids()

    def add(self, value: dict[str, Json], data: bytes, *, line: int, place: int, length: int) -> None:
        """Takes the next object of the file; `data` is valid UTF-8. Raises TooLarge above MAX_MESSAGES."""
        role = value.get("role")
        self.objects += 1
        self._types[role if isinstance(role, str) and role in ROLES else "unknown"] += 1
        found = plain_message(data, value)
        if found is None:
            self.unusable += 1
            return
        if len(self.kept) >= MAX_MESSAGES:
            raise TooLarge(f"The transcript has more than {MAX_MESSAGES} messages. Import it in parts.")
        self._keep(_kept(found, found.message.uuid or self._derived.next(data), line, place, length))

    def _keep(self, kept: Kept) -> None:
        place = self._places.get(kept.uuid)
        if place is None:
            self._places[kept.uuid] = len(self.kept)
            self.kept.append(kept)
            return
        self._duplicate_count += 1
        if len(self._duplicates) < MAX_LISTED:
            self._duplicates.append(DuplicateRow(kept.role, (self.kept[place].line, kept.line)))
        if self.kept[place].partial and not kept.partial:
            self.kept[place] = kept

    @property
    def digest(self) -> str:
        """A name for a session that has none: of its first message's own uuid, else of all messages."""
        told = self.kept[:1] if self.kept[0].own_uuid else self.kept
        return short_digest(kept.uuid.encode() for kept in told)

    @property
    def model(self) -> str | None:
        """The model of the last answer that names one."""
        return next((kept.model for kept in reversed(self.kept) if kept.role == "assistant" and kept.model), None)

    def report(self, format_name: str, *, lines: int, malformed: Malformed) -> ImportReport:
        """The report over all that was added."""
        full = _entries(self.kept)
        fragments = [entry.api_message_id for entry in full if entry.role == "assistant" and entry.api_message_id]
        return ImportReport(
            format=format_name,
            thread="main",
            lines=lines,
            objects=self.objects,
            row_types=dict(sorted(self._types.items())),
            malformed=malformed,
            stored_messages=len(self.kept),
            full_history=turn_facts(full),
            current_window=turn_facts(_entries(self._window())),
            fragments_merged=len(fragments) - len(set(fragments)),
            file_order_messages=len(turns(full)),
            duplicate_uuid_row_count=self._duplicate_count,
            duplicate_uuid_rows=tuple(self._duplicates),
            unusable_rows_skipped=self.unusable,
            meta_user_rows=sum(1 for kept in self.kept if kept.role == "user" and kept.is_meta),
            missing_parents=sum(1 for kept in self.kept if kept.parent_uuid and kept.parent_uuid not in self._places),
            last_usage=_last_usage(self.kept),
        )

    def _window(self) -> Sequence[Kept]:
        boundaries = [index for index, kept in enumerate(self.kept) if kept.is_boundary]
        return self.kept[boundaries[-1] + 1 :] if boundaries else self.kept


def _kept(found: PlainMessage, uuid: str, line: int, place: int, length: int) -> Kept:
    message = found.message
    return Kept(
        line=line,
        place=place,
        length=length,
        uuid=uuid,
        own_uuid=message.uuid is not None,
        role=message.role,
        content=found.content,
        in_conversation=message.in_conversation,
        is_boundary=message.is_boundary,
        is_meta=message.is_meta,
        partial=message.partial,
        api_message_id=message.api_message_id,
        parent_uuid=message.parent_uuid,
        model=message.model,
        usage=message.usage,
    )


def _entries(kept: Sequence[Kept]) -> list[Entry]:
    return [Entry(one.role, one.api_message_id, one.content) for one in kept if one.in_conversation]


def _last_usage(kept: Sequence[Kept]) -> LastUsage | None:
    last = next((one for one in reversed(kept) if one.usage is not None and one.role == "assistant"), None)
    if last is None or last.usage is None:
        return None
    return LastUsage(line=last.line, prompt_tokens=last.usage.prompt_tokens, **last.usage.to_dict())
