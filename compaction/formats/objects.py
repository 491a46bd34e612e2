"""The JSON objects of a file of lines, with an account of the lines that are damaged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Generic, TypeVar

from compaction.formats.lines import Line, Salvage, read_lines, readable
from compaction.formats.report import MAX_LISTED, Malformed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """An object: decoded, and as the bytes that stand at `offset` in the file."""

    value: T
    line: int
    offset: int
    data: bytes


class ObjectReader(Generic[T]):
    """Reads objects line by line and counts what it had to save or give up.

    `decode` gives None for bytes that are not one JSON object. `restart` and `is_whole` are for objects behind
    garbage: where one may begin, and whether it is one of its own rather than the inside of a torn one.
    """

    def __init__(
        self,
        decode: Callable[[bytes], T | None],
        *,
        restart: re.Pattern[str] | None = None,
        is_whole: Callable[[T], bool] = lambda _: True,
    ) -> None:
        self._decode = decode
        self._restart = restart
        self._is_whole = is_whole
        self.lines = 0
        self._malformed: list[int] = []
        self._malformed_count = 0
        self._recovered = 0
        self._chars_lost = 0
        self._oversized = 0
        self._invalid_utf8 = 0

    @property
    def malformed(self) -> Malformed:
        """The damage so far."""
        return Malformed(
            line_count=self._malformed_count,
            lines=tuple(self._malformed),
            objects_recovered=self._recovered,
            chars_lost=self._chars_lost,
            oversized_lines=self._oversized,
            invalid_utf8_lines=self._invalid_utf8,
        )

    def read(self, file: BinaryIO) -> Iterator[Found[T]]:
        """Every object from the file's start, in order. Holds one line at a time."""
        for line in read_lines(file):
            self.lines += 1
            yield from self._objects(line)

    def _objects(self, line: Line) -> Iterator[Found[T]]:
        if line.oversized:
            self._oversized += 1
            self._note_malformed(line.number)
            return
        data, replaced = readable(line.data)
        self._invalid_utf8 += replaced
        value = self._decode(data)
        if value is not None:
            yield Found(value, line.number, line.offset, line.data)
            return
        self._note_malformed(line.number)
        yield from self._recover(line)

    def _recover(self, line: Line) -> Iterator[Found[T]]:
        saved = Salvage(line.data, restart=self._restart)
        for piece in saved.pieces():
            part = line.data[piece.start : piece.end]
            value = self._decode(readable(part)[0])
            if value is None or (piece.resumed and not self._is_whole(value)):
                self._chars_lost += len(part)
                continue
            self._recovered += 1
            yield Found(value, line.number, line.offset + piece.start, part)
        self._chars_lost += saved.chars_lost

    def _note_malformed(self, number: int) -> None:
        self._malformed_count += 1
        if len(self._malformed) < MAX_LISTED:
            self._malformed.append(number)
