"""What every importer gives back: who the session is, what was found, and the bodies to store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from compaction.core.jsonbytes import Json
from compaction.formats.report import ImportReport

OnProgress = Callable[[int, int], None]  # (bytes done, bytes total) over all readings of the file
READINGS = 3
PROGRESS_STEP_BYTES = 1024 * 1024  # a 100 MB file moves a progress bar 200 times


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A transcript after its first reading. The file must stay open and unchanged until `bodies` has been used up."""

    session_id: str  # 1 to 200 of [A-Za-z0-9._:-]
    named_by_file: bool  # False where the file has no id: then `session_id` is a digest of the content
    model: str | None
    report: ImportReport
    system: Json = None  # the session's system prompt and tools, where the format has them
    tools: Json = None
    left_uuids: tuple[str, ...] = field(default=(), repr=False)  # messages of the file that the user went back behind
    open_bodies: Callable[[], Iterator[bytes]] = field(repr=False)

    def bodies(self) -> Iterator[bytes]:
        """The messages in order, each as the JSON bytes to store (DESIGN §8), its content as it stands in the file.

        Every body has a uuid, the same on every import of the same row. Reads the file row by row.
        May be read twice: once to check, once to store.
        Raises InvalidRequest when the file has changed since the first reading.
        """
        return self.open_bodies()


class Progress:
    """Tells a listener how far three readings of a file have come, at most once per PROGRESS_STEP_BYTES.

    The first decides, the second checks what it cuts out, the third stores it.
    """

    def __init__(self, total_bytes: int, listener: OnProgress | None) -> None:
        self._file_bytes = total_bytes
        self._listener = listener
        self._told = 0
        self._cut = 1  # readings done before the present one

    def first(self, offset: int) -> None:
        """The first reading has come to `offset`."""
        self._tell(offset)

    def cut(self, offset: int) -> None:
        """The second or third reading has come to `offset`."""
        self._tell(self._cut * self._file_bytes + offset)

    def done(self) -> None:
        """The second or third reading is through."""
        self._cut = min(self._cut + 1, READINGS)
        if self._listener is not None:
            self._listener(self._cut * self._file_bytes, READINGS * self._file_bytes)

    def _tell(self, done: int) -> None:
        if self._listener is not None and done - self._told >= PROGRESS_STEP_BYTES:
            self._told = done
            self._listener(done, READINGS * self._file_bytes)


def size_of(file: BinaryIO) -> int:
    """The bytes of a seekable file; leaves it at its start."""
    size = file.seek(0, 2)
    file.seek(0)
    return size
