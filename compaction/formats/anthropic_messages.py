"""Reads conversations in the shape of the Messages API.

Either JSON lines of {role, content} with any envelope fields of DESIGN §8, or one JSON document: a list of messages,
or an object {model?, system?, tools?, session_id?, messages}. Lines may be damaged; a document
is read whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from compaction.errors import InvalidRequest
from compaction.formats.collection import Collection, Kept
from compaction.formats.document import Document, document_in
from compaction.formats.identity import is_session_id
from compaction.formats.lines import readable
from compaction.formats.objects import ObjectReader
from compaction.formats.plain import decode_object, plain_message
from compaction.formats.report import Malformed
from compaction.formats.rows import name
from compaction.formats.transcript import OnProgress, Progress, Transcript, size_of

FORMAT = "anthropic_messages"
Fetch = Callable[[Kept], bytes]


def read(file: BinaryIO, *, on_progress: OnProgress | None = None) -> Transcript:
    """The session in a seekable binary file, which must stay open until its bodies have been read.

    Raises InvalidRequest when nothing in it is a message (never an empty session) or a list breaks off, TooLarge when
    it has too many messages or is too long a document.
    """
    progress = Progress(size_of(file), on_progress)
    document = document_in(file)
    return _read_lines(file, progress) if document is None else _read_document(document, progress)


def _read_lines(file: BinaryIO, progress: Progress) -> Transcript:
    reader, collection = ObjectReader(decode_object), Collection()
    for found in reader.read(file):
        collection.add(
            found.value, readable(found.data)[0], line=found.line, place=found.offset, length=len(found.data)
        )
        progress.first(found.offset)

    def fetch(kept: Kept) -> bytes:
        file.seek(kept.place)
        return readable(file.read(kept.length))[0]

    return _transcript(collection, Document(()), fetch, progress, lines=reader.lines, malformed=reader.malformed)


def _read_document(document: Document, progress: Progress) -> Transcript:
    collection = Collection()
    for index, data in enumerate(document.messages):
        value = decode_object(data)
        collection.add(value if value is not None else {}, data, line=index + 1, place=index, length=len(data))
    malformed = Malformed(invalid_utf8_lines=int(document.invalid_utf8))
    count = len(document.messages)
    return _transcript(
        collection, document, lambda kept: document.messages[kept.place], progress, lines=count, malformed=malformed
    )


def _transcript(  # noqa: PLR0913 - what the two shapes of file have in common
    collection: Collection, document: Document, fetch: Fetch, progress: Progress, *, lines: int, malformed: Malformed
) -> Transcript:
    if not any(kept.role != "system" for kept in collection.kept):
        raise InvalidRequest("The transcript holds no conversation: it has no user or assistant message to import.")
    session_id, model = document.member("session_id", "sessionId"), name(document.member("model"))
    named = is_session_id(session_id)
    return Transcript(
        session_id=session_id if named else f"import-{collection.digest}",
        named_by_file=named,
        model=model or collection.model,
        system=document.member("system"),
        tools=document.member("tools"),
        report=collection.report(FORMAT, lines=lines, malformed=malformed),
        open_bodies=lambda: _bodies(collection.kept, fetch, progress),
    )


def _bodies(kept: Sequence[Kept], fetch: Fetch, progress: Progress) -> Iterator[bytes]:
    for one in kept:
        data = fetch(one)
        found = plain_message(data, decode_object(data) or {})
        if found is None or found.message.role != one.role:
            raise InvalidRequest("The transcript has changed while it was being imported. Import it again.")
        progress.cut(one.place)
        yield found.named(one.uuid)
    progress.done()
