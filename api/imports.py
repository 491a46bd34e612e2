"""Storing a transcript: read and checked as a whole, then appended in batches, each in a short transaction.

A file that cannot be stored stores nothing. An import that breaks on its way (a server that goes away, a caller who
hangs up) has stored a beginning; the same import once more stores the rest, because uuids are the same each time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from api.intake import new_messages
from api.schemas.messages import Imported
from api.services import Services
from compaction import formats
from compaction.core import jsonbytes
from compaction.core.messages import Message, decode_message
from compaction.errors import InvalidRequest, Unavailable
from compaction.formats import OnProgress, Transcript
from compaction.store import sessions
from compaction.store.sessions import Appended, NewMessage, SessionRow

BATCH_MESSAGES = 500  # rows in one insert
BATCH_BYTES = 4 * 2**20  # bodies held at a time: the import's memory does not grow with the file
MAX_MARKED = 20_000  # uuids in one statement: 1 MB
_BROKE_OFF = "The import broke off after {count} messages. Import the file again: it goes on where it stopped."
DEFAULT_MODEL = "claude-sonnet-5-5"  # for a transcript that names none; PUT the session to change it


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What was asked for. `session_id` and `model` override what the file says."""

    tenant_id: int
    format_name: str = formats.AUTO
    session_id: str | None = None
    model: str | None = None


async def store(held: Services, file: BinaryIO, wanted: Import, on_progress: OnProgress | None = None) -> Imported:
    """Imports the transcript in `file`.

    Raises InvalidRequest for an unknown format or a message that cannot be stored; then nothing was stored. Raises
    Unavailable when the database went away on the way; then the same import once more stores the rest.
    """

    def checked() -> Transcript:
        found = formats.read(file, format_name=wanted.format_name, on_progress=on_progress)
        batches = _Batches(found)
        while batches.following():
            pass
        return found

    transcript = await asyncio.to_thread(checked)
    row = await _session(held, transcript, wanted)
    total = await _append(held, transcript, row)
    return Imported(
        session_id=row.name,
        head_seq=total.head_seq,
        appended=total.appended,
        duplicates=total.duplicates,
        report=transcript.report.to_dict(),
    )


async def _session(held: Services, transcript: Transcript, wanted: Import) -> SessionRow:
    """The session as it is, created if need be. What the user went back behind is off its live view from here on."""
    name = wanted.session_id or transcript.session_id
    async with held.database.begin() as conn:
        row = await sessions.get(conn, wanted.tenant_id, name)
        if row is not None:
            for start in range(0, len(transcript.left_uuids), MAX_MARKED):
                left = transcript.left_uuids[start : start + MAX_MARKED]
                await sessions.follow(conn, row.id, left=left, taken=())
        if row is not None and wanted.model is None:
            return row
        return await sessions.put(
            conn,
            wanted.tenant_id,
            name,
            model=wanted.model or transcript.model or held.settings.summary_model or DEFAULT_MODEL,
            parameters=_parameters(transcript),
        )


async def _append(held: Services, transcript: Transcript, row: SessionRow) -> Appended:
    """Appends batch after batch; between two of them the session is free for others."""
    total = Appended(head_seq=row.head_seq, appended=0, duplicates=0, replaced=0)
    batches = _Batches(transcript)
    try:
        while batch := await asyncio.to_thread(batches.following):
            async with held.database.begin() as conn:
                if row.head_seq:
                    taken = [message.uuid for message in batch if message.uuid is not None]
                    await sessions.follow(conn, row.id, left=(), taken=taken)
                total = _plus(total, await sessions.append(conn, row.id, batch))
    except Unavailable:
        raise Unavailable(_BROKE_OFF.format(count=total.appended)) from None
    return total


class _Batches:
    """Cuts a transcript's bodies into batches of bounded size; blocking, for a thread."""

    def __init__(self, transcript: Transcript) -> None:
        self._bodies = transcript.bodies()
        self._before: Message | None = None

    def following(self) -> tuple[NewMessage, ...]:
        """The next batch; empty at the end."""
        bodies = list(self._cut())
        try:
            batch = tuple(new_messages(bodies, path="transcript", after=self._before))
        except InvalidRequest as error:
            raise InvalidRequest("The transcript holds a message that cannot be stored.", fields=error.fields) from None
        if bodies:
            self._before = decode_message(bodies[-1])
        return batch

    def _cut(self) -> Iterator[bytes]:
        count = size = 0
        for body in self._bodies:
            yield body
            count, size = count + 1, size + len(body)
            if count >= BATCH_MESSAGES or size >= BATCH_BYTES:
                return


def _parameters(transcript: Transcript) -> dict[str, bytes]:
    given = {"system": transcript.system, "tools": transcript.tools}
    return {name: jsonbytes.encode(value) for name, value in given.items() if value is not None}


def _plus(total: Appended, more: Appended) -> Appended:
    return Appended(
        head_seq=more.head_seq,
        appended=total.appended + more.appended,
        duplicates=total.duplicates + more.duplicates,
        replaced=total.replaced + more.replaced,
    )
