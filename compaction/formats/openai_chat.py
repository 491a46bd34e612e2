"""Reads conversations in the shape of OpenAI's chat completions.

Either JSON lines of messages, or one JSON document: a list of messages, or a request {model?, tools?, messages}. A file
with a conversation in each line (the form for fine-tuning) holds many sessions, and an import makes one: it is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO

from compaction.core import jsonbytes
from compaction.core.jsonbytes import Json
from compaction.errors import InvalidRequest
from compaction.formats.chat_messages import ROLES, ChatMessage, ChatMessages, tools_of
from compaction.formats.collection import Collection
from compaction.formats.document import Document, document_in, is_conversation, several_conversations
from compaction.formats.identity import is_session_id, short_digest
from compaction.formats.lines import readable
from compaction.formats.objects import ObjectReader
from compaction.formats.plain import decode_object
from compaction.formats.report import Malformed
from compaction.formats.rows import name
from compaction.formats.transcript import OnProgress, Progress, Transcript, size_of

FORMAT = "openai_chat"
_CHANGED = "The transcript has changed while it was being imported. Import it again."


def read(file: BinaryIO, *, on_progress: OnProgress | None = None) -> Transcript:
    """The session in a seekable binary file, which must stay open until its bodies have been read.

    Raises InvalidRequest when nothing in it is a message or it holds many conversations, TooLarge when it has too many
    messages or is too long a document.
    """
    progress = Progress(size_of(file), on_progress)
    document = document_in(file)
    source = _Lines(file) if document is None else _Elements(document)
    chat, collection, left = ChatMessages(), Collection(), list[str]()
    for message in _converted(source.objects(progress.first), chat):
        body = message.body()
        left += message.earlier_uuids
        collection.add(decode_object(body) or {}, body, line=message.line, place=message.place, length=len(body))
    if not collection.kept:
        raise InvalidRequest("The transcript holds no conversation: it has no user or assistant message to import.")
    document = document or Document(())
    session_id = document.member("session_id", "sessionId")
    named = is_session_id(session_id)
    kept = {one.uuid for one in collection.kept}
    report = collection.report(FORMAT, lines=source.lines, malformed=source.malformed)
    return Transcript(
        session_id=session_id if named else f"import-{short_digest(one.uuid.encode() for one in collection.kept)}",
        named_by_file=named,
        model=name(document.member("model")),
        system=chat.system_prompt,
        tools=tools_of(document.member("tools"), document.member("functions")),
        left_uuids=tuple(left),
        report=replace(
            report,
            objects=source.types.total(),
            row_types=dict(sorted(source.types.items())),
            unusable_rows_skipped=chat.unusable + collection.unusable,
        ),
        open_bodies=lambda: _bodies(source, kept, progress),
    )


def _converted(objects: Iterable[tuple[Json, bytes, int, int]], chat: ChatMessages) -> Iterator[ChatMessage]:
    for value, data, line, place in objects:
        yield from chat.add(value, data, line=line, place=place)
    yield from chat.end()


def _bodies(source: _Lines | _Elements, kept: set[str], progress: Progress) -> Iterator[bytes]:
    """The conversion once more: it depends on the file alone."""
    count = 0
    for message in _converted(source.objects(progress.cut), ChatMessages()):
        if message.uuid in kept:
            count += 1
            yield message.body()
    if count != len(kept):
        raise InvalidRequest(_CHANGED)
    progress.done()


class _Lines:
    """The objects of a file of lines."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.lines = 0
        self.malformed = Malformed()
        self.types: Counter[str] = Counter()

    def objects(self, tell: Callable[[int], None]) -> Iterator[tuple[Json, bytes, int, int]]:
        reader, types, conversations = ObjectReader(decode_object), Counter[str](), 0
        for found in reader.read(self._file):
            types[_role(found.value)] += 1
            conversations += is_conversation(found.value)
            yield found.value, readable(found.data)[0], found.line, found.offset
            tell(found.offset)
        if conversations:
            raise several_conversations(conversations)
        self.lines, self.malformed, self.types = reader.lines, reader.malformed, types


class _Elements:
    """The objects of a document."""

    def __init__(self, document: Document) -> None:
        self._messages = document.messages
        self.lines = len(document.messages)
        self.malformed = Malformed(invalid_utf8_lines=int(document.invalid_utf8))
        self.types: Counter[str] = Counter()

    def objects(self, tell: Callable[[int], None]) -> Iterator[tuple[Json, bytes, int, int]]:
        self.types = Counter()
        for index, data in enumerate(self._messages):
            value = jsonbytes.decode(data)
            self.types[_role(value)] += 1
            yield value, data, index + 1, index
            tell(index)


def _role(value: Json) -> str:
    role = value.get("role") if isinstance(value, dict) else None
    return role if isinstance(role, str) and role in ROLES else "unknown"
