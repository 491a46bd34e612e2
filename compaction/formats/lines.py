"""Lines of a transcript file: cut on line feeds alone, bounded in size, with what can be saved from damaged ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from compaction.core.json_values import MAX_MESSAGE_VALUES, holds_more
from compaction.errors import TooLarge

MAX_LINE_BYTES = 32 * 1024 * 1024  # the Messages API takes 32 MB per request: no longer row was ever sent to a model
MAX_LINES = 1_000_000  # a real line has 4 KB on average; a file of line feeds must not hold a thread for a minute
MAX_RESTARTS = 8  # tries per damaged line to find a row behind garbage; torn writes leave one, each try may scan it all
BOM = b"\xef\xbb\xbf"
SPACE = b" \t\r\n"
_SPACE_OR_NUL = re.compile(r"[ \t\r\n\x00]+")
_SCANNER = json.JSONDecoder()


class Line(NamedTuple):
    """One line without its surrounding white space. `offset` is where `data` begins in the file, in bytes."""

    number: int  # from 1, as an editor counts
    offset: int
    data: bytes
    oversized: bool = False  # over MAX_LINE_BYTES or MAX_MESSAGE_VALUES: `data` is empty, the line was skipped


class Piece(NamedTuple):
    """A JSON object inside a damaged line, in bytes of that line."""

    start: int
    end: int
    resumed: bool  # stands behind garbage: it may be the inside of a torn object


def read_lines(file: BinaryIO) -> Iterator[Line]:
    """Every non-empty line from the start of `file`. Holds one line of at most MAX_LINE_BYTES.

    Raises TooLarge after MAX_LINES.
    """
    file.seek(0)
    number = offset = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if number > MAX_LINES:
            raise TooLarge(f"The transcript has more than {MAX_LINES} lines. Split it by session and import the parts.")
        start, offset = offset, offset + len(raw)
        if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
            offset += _skip_to_newline(file)
            yield Line(number, start, b"", oversized=True)
            continue
        if start == 0 and raw.startswith(BOM):
            raw, start = raw[len(BOM) :], len(BOM)
        stripped = raw.lstrip(SPACE)
        data = stripped.rstrip(SPACE)
        if holds_more(data, MAX_MESSAGE_VALUES):
            yield Line(number, start, b"", oversized=True)
        elif data:
            yield Line(number, start + len(raw) - len(stripped), data)


def _skip_to_newline(file: BinaryIO) -> int:
    skipped = 0
    while raw := file.readline(1024 * 1024):
        skipped += len(raw)
        if raw.endswith(b"\n"):
            break
    return skipped


def readable(data: bytes) -> tuple[bytes, bool]:
    """`data` as valid UTF-8, and whether bytes had to be replaced by U+FFFD for that."""
    if data.isascii():
        return data, False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode("utf-8"), True
    return data, False


class Salvage:
    """The whole objects in a line that is not one: two glued together, or one beside garbage.

    `restart` matches where an object may begin again behind garbage; without it, the first garbage ends the search. NUL
    bytes (what a file system leaves after a crash) are stepped over. Linear in the line's length but for MAX_RESTARTS.
    """

    def __init__(self, data: bytes, *, restart: re.Pattern[str] | None = None) -> None:
        self.chars_lost = 0  # complete when the pieces have been used up
        self._text = data.decode("utf-8", "surrogateescape")
        self._restart = restart
        self._restarts = 0

    def pieces(self) -> Iterator[Piece]:
        """The objects in order, one at a time: a hostile line holds millions."""
        at_char = at_byte = 0
        index = self._next(0)
        while index < len(self._text):
            end = self._object_end(index)
            if end is None:
                index = self._resume(index)
                continue
            start = at_byte + _byte_count(self._text[at_char:index])
            at_char, at_byte = end, start + _byte_count(self._text[index:end])
            yield Piece(start, at_byte, self._restarts > 0)
            index = self._next(end)

    def _next(self, index: int) -> int:
        """Steps over white space and NUL."""
        match = _SPACE_OR_NUL.match(self._text, index)
        if match is None:
            return index
        self.chars_lost += match.group().count("\0")
        return match.end()

    def _object_end(self, index: int) -> int | None:
        if self._text[index] != "{":
            return None
        try:
            return _SCANNER.raw_decode(self._text, index)[1]
        except (ValueError, RecursionError):
            return None

    def _resume(self, index: int) -> int:
        """Where an object may begin next; what lies between is lost."""
        self._restarts += 1
        match = None
        if self._restart is not None and self._restarts <= MAX_RESTARTS:
            match = self._restart.search(self._text, index + 1)
        target = match.start() if match else len(self._text)
        self.chars_lost += target - index
        return target


def _byte_count(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))
