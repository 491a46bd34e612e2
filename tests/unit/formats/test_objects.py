from __future__ import annotations

import io
import json
from typing import Any

from compaction.formats.objects import Found, ObjectReader
from compaction.formats.report import Malformed


def decode(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def read(data: bytes) -> tuple[list[Found[dict[str, Any]]], ObjectReader[dict[str, Any]]]:
    reader = ObjectReader(decode)
    return list(reader.read(io.BytesIO(data))), reader


def test_an_object_comes_with_the_bytes_at_its_offset() -> None:
    found, reader = read(b'{"a":1}\n  {"b":2}\n')
    assert found == [Found({"a": 1}, 1, 0, b'{"a":1}'), Found({"b": 2}, 2, 10, b'{"b":2}')]
    assert reader.malformed == Malformed()


def test_glued_objects_have_their_own_offsets_and_their_line_counts_as_malformed() -> None:
    found, reader = read('{"ü":1}{"b":2}\n'.encode())
    assert [(one.offset, one.data) for one in found] == [(0, '{"ü":1}'.encode()), (8, b'{"b":2}')]
    assert reader.malformed == Malformed(line_count=1, lines=(1,), objects_recovered=2)


def test_damage_is_counted_and_never_fatal() -> None:
    found, reader = read(b'{"a":1}\n' + b"\x00" * 50 + b'\n[1]\n{"torn":\n{"b":2}')
    assert [one.value for one in found] == [{"a": 1}, {"b": 2}]
    assert reader.lines == 5
    assert reader.malformed == Malformed(line_count=3, lines=(2, 3, 4), chars_lost=50 + 3 + 8)


def test_a_line_with_broken_utf_8_is_read_and_counted_on_its_own() -> None:
    found, reader = read(b'{"a":"\xff"}\n')
    assert found == [Found({"a": "\ufffd"}, 1, 0, b'{"a":"\xff"}')]
    assert reader.malformed == Malformed(invalid_utf8_lines=1)


def test_the_list_of_malformed_lines_is_bounded_but_their_number_is_not() -> None:
    _, reader = read(b"oops\n" * 250)
    assert reader.malformed.line_count == 250
    assert reader.malformed.lines == tuple(range(1, 101))
