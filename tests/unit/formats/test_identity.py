from __future__ import annotations

import pytest

from compaction.formats.identity import DerivedUuids, is_session_id, short_digest


def test_equal_rows_get_different_uuids_and_the_same_ones_on_the_next_import() -> None:
    first, again = DerivedUuids(), DerivedUuids()
    rows = [b"ok", b"go", b"ok"]
    names = [first.next(row) for row in rows]
    assert len(set(names)) == 3
    assert [again.next(row) for row in [*rows, b"more"]][:3] == names


def test_a_derived_uuid_is_one_that_an_envelope_takes() -> None:
    assert DerivedUuids().next("ü \n".encode()).isascii()
    assert len(DerivedUuids().next(b"x")) == 44


def test_a_digest_sees_where_its_parts_end() -> None:
    assert short_digest([b"ab", b"c"]) != short_digest([b"a", b"bc"])


@pytest.mark.parametrize("name", ["a", "A.b_c:d-9", "x" * 200])
def test_a_session_id_is_made_of_letters_digits_and_four_signs(name: str) -> None:
    assert is_session_id(name)


@pytest.mark.parametrize("name", ["", "x" * 201, "a b", "a/b", "ü", "a\n", 7, None])
def test_anything_else_is_no_session_id(name: object) -> None:
    assert not is_session_id(name)
