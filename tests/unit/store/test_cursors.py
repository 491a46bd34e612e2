"""Cursors: opaque, and only ours are taken back."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import errors
from compaction.store import cursors


@given(st.integers(0, 2**63 - 1))
def test_a_number_comes_back(number: int) -> None:
    assert cursors.decode_number(cursors.encode_number(number)) == number


@given(st.uuids().filter(lambda one: one.int < 2**127))
def test_a_uuid_comes_back(identifier: object) -> None:
    assert cursors.decode_uuid(cursors.encode_uuid(str(identifier))) == str(identifier)


def test_no_cursor_is_the_first_page() -> None:
    assert cursors.decode_number(None) is None
    assert cursors.decode_uuid(None) is None


@given(st.text(max_size=30) | st.binary(max_size=20).map(lambda data: data.decode("latin-1")))
def test_anything_else_is_an_invalid_request_or_a_position(cursor: str) -> None:
    for decode in (cursors.decode_number, cursors.decode_uuid):
        with contextlib.suppress(errors.InvalidRequest):
            assert decode(cursor) is not None


@pytest.mark.parametrize("cursor", ["", "AAAA", "\ud83d", "gAAAAAAAAAA"])
def test_a_made_up_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(errors.InvalidRequest):
        cursors.decode_number(cursor)
