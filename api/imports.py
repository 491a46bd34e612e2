"""Storing a transcript: read twice in a thread, appended in batches within one transaction, all or nothing."""

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
from compaction.errors import InvalidRequest
from compaction.formats import OnProgress, Transcript
from compaction.store import sessions
from compaction.store.sessions import Appended, NewMessage

BATCH_MESSAGES = 500  # rows in one insert
BATCH_BYTES = 4 * 2**20  # bodies held at a time: the import's memory does not grow with the file
DEFAULT_MODEL = "claude-sonnet-5-5"  # for a transcript that names none; PUT the session to change it


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What was asked for. `session_id` and `model` override what the file says."""

    tenant_id: int
    format_name: str = formats.AUTO
    session_id: str | None = None
    model: str | None = None


async def store(held: Services, file: BinaryIO, wanted: Import, on_progress: OnProgress | None = None) -> Imported:
    """Imports the transcript in `file`. Raises InvalidRequest for an unknown format; then nothing was stored."""

    def first_reading() -> Transcript:
        return formats.read(file, format_name=wanted.format_name, on_progress=on_progress)

    transcript = await asyncio.to_thread(first_reading)
    name = wanted.session_id or transcript.session_id
    async with held.database.begin() as conn:
        row = await sessions.get(conn, wanted.tenant_id, name)
        if row is None or wanted.model is not None:
            row = await sessions.put(
                conn,
                wanted.tenant_id,
                name,
                model=wanted.model or transcript.model or held.settings.summary_model or DEFAULT_MODEL,
                parameters=_parameters(transcript),
            )
        total = Appended(head_seq=row.head_seq, appended=0, duplicates=0, replaced=0)
        batches = _Batches(transcript)
        while batch := await asyncio.to_thread(batches.following):
            total = _plus(total, await sessions.append(conn, row.id, batch))
    return Imported(
        session_id=name,
        head_seq=total.head_seq,
        appended=total.appended,
        duplicates=total.duplicates,
        report=transcript.report.to_dict(),
    )


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
