from __future__ import annotations

import io
import re

import pytest

from compaction.errors import TooLarge
from compaction.formats import lines
from compaction.formats.lines import Line, Salvage, read_lines, readable

ROW = re.compile(r'\{"uuid"')


def read(data: bytes) -> list[Line]:
    return list(read_lines(io.BytesIO(data)))


def saved(data: bytes, restart: re.Pattern[str] | None = None) -> tuple[list[bytes], int]:
    salvage = Salvage(data, restart=restart)
    pieces = [data[piece.start : piece.end] for piece in salvage.pieces()]
    return pieces, salvage.chars_lost


def test_a_line_knows_its_number_and_where_its_bytes_begin() -> None:
    assert read(b"ab\n\n  cd\r\nef") == [Line(1, 0, b"ab"), Line(3, 6, b"cd"), Line(4, 10, b"ef")]


def test_only_a_line_feed_ends_a_line() -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf".encode()
    assert read(text + b"\ng")[0] == Line(1, 0, text)


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert read(b"\xef\xbb\xbf{}\n\xef\xbb\xbf{}") == [Line(1, 3, b"{}"), Line(2, 6, b"\xef\xbb\xbf{}")]


def test_a_line_over_the_limit_is_passed_over_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    found = read(b"short\n" + b"x" * 35 + b"\nafter\n" + b"y" * 11)
    assert found == [Line(1, 0, b"short"), Line(2, 6, b"", True), Line(3, 42, b"after"), Line(4, 48, b"", True)]


def test_a_line_of_exactly_the_limit_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    assert read(b"0123456789\nx") == [Line(1, 0, b"0123456789"), Line(2, 11, b"x")]


def test_a_file_with_too_many_lines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINES", 3)
    with pytest.raises(TooLarge, match="more than 3 lines"):
        read(b"\n\n\n\n")


def test_bytes_that_are_no_utf_8_are_replaced_and_told() -> None:
    assert readable(b"caf\xe9") == ("caf\ufffd".encode(), True)
    assert readable("café".encode()) == ("café".encode(), False)


def test_glued_objects_come_apart_without_a_loss() -> None:
    assert saved('{"a":"ü"}{"b":2} {"c":3}'.encode()) == (['{"a":"ü"}'.encode(), b'{"b":2}', b'{"c":3}'], 0)


def test_nul_bytes_before_and_between_objects_are_stepped_over_and_counted() -> None:
    assert saved(b'\x00\x00{"a":1}\x00{"b":2}') == ([b'{"a":1}', b'{"b":2}'], 3)


def test_garbage_ends_the_search_where_nothing_says_how_an_object_begins() -> None:
    assert saved(b'{"a":1}what{"uuid":2}') == ([b'{"a":1}'], 14)


def test_a_row_behind_a_torn_one_is_found_again() -> None:
    assert saved(b'{"a":{"b":{"uuid":"7"}', ROW) == ([b'{"uuid":"7"}'], 10)


def test_pieces_are_exact_bytes_even_beside_broken_utf_8() -> None:
    assert saved(b'{"a":"\xff\xfe"}{"b":2}') == ([b'{"a":"\xff\xfe"}', b'{"b":2}'], 0)


def test_a_hostile_line_gets_a_bounded_number_of_restarts() -> None:
    pieces, lost = saved(b'{"uuid":' * 1000 + b'{"uuid":1}', ROW)
    assert pieces == []
    assert lost == 8 * 1000 + 10


def test_what_is_no_object_is_lost() -> None:
    assert saved(b"[1,2]") == ([], 5)
