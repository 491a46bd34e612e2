from __future__ import annotations

import io

import pytest

from compaction.errors import InvalidRequest, TooLarge
from compaction.formats import document
from compaction.formats.document import Document, document_in


def whole(data: bytes) -> Document | None:
    return document_in(io.BytesIO(data))


def test_a_list_is_cut_into_its_elements() -> None:
    assert whole(b' [ {"a": 1},\n {"b":2} ]\n') == Document((b'{"a": 1}', b'{"b":2}'))


def test_an_object_gives_its_messages_and_its_other_members() -> None:
    found = whole(b'{\n "model": "m",\n "messages": [{"a": 1}],\n "system": "s"\n}')
    assert found == Document((b'{"a": 1}',), {"model": b'"m"', "system": b'"s"'})
    assert (found.member("model"), found.member("none", "system"), found.member("none")) == ("m", "s", None)


def test_half_characters_and_nan_do_not_stop_a_document() -> None:
    assert whole(b'{"system":"\\ud83d","messages":[{"v":NaN}]}') == Document((b'{"v":NaN}',), {"system": b'"\\ud83d"'})
    assert whole(b'[{"v":"\\ud83d"}]') == Document((b'{"v":"\\ud83d"}',))


def test_a_byte_order_mark_and_broken_utf_8_are_tolerated() -> None:
    assert whole(b'\xef\xbb\xbf[{"a":"\xff"}]') == Document(('{"a":"\ufffd"}'.encode(),), {}, invalid_utf8=True)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"role":"user"}\n{"role":"assistant"}',
        b'{"role":"us\n{"role":"assistant"}',
        b'{"messages":[]}\n{"messages":[]}',
        b'{"messages":5}',
        b'{"messages":[{"v":NaN}]} trailing',
        b"plain text",
        b'[log] started\n{"role":"user"}',
        b"\x00\x00",
    ],
)
def test_a_file_of_lines_is_no_document(data: bytes) -> None:
    assert whole(data) is None


def test_what_stands_behind_a_list_is_not_passed_over() -> None:
    for data in (b'[{"a":1}] trailing', b'[{"v":NaN}] trailing'):
        with pytest.raises(InvalidRequest, match="not whole"):
            whole(data)


def test_a_list_that_breaks_off_is_refused_with_the_place_and_without_the_words() -> None:
    with pytest.raises(InvalidRequest, match="not whole") as caught:
        whole(b'[{"role":"user","content":"SECRET"},')
    assert "SECRET" not in str(caught.value)


def test_a_document_is_held_in_memory_and_therefore_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MAX_DOCUMENT_BYTES", 20)
    with pytest.raises(TooLarge, match="one message per line"):
        whole(b'[{"role":"user"},{"role":"user"}]')
    assert whole(b'{"torn\n{"role":"user"}\n') is None


def test_a_document_on_one_line_may_be_longer_than_any_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compaction.formats.lines.MAX_LINE_BYTES", 30)
    long = b'{"role":"user","content":"%s"}' % (b"x" * 50)
    assert whole(b"[" + long + b"]") == Document((long,))
    assert whole(b'{"messages":[' + long + b"]}") == Document((long,))
