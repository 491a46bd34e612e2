from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.core.json_values import holds_more, together_hold_more

VALUES = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def marks(value: object) -> int:
    """By hand: an opening per container, a comma between two of its parts, a colon per member."""
    if not isinstance(value, dict | list):
        return 0
    inner = list(value.values()) if isinstance(value, dict) else value
    members = len(value) if isinstance(value, dict) else 0
    return 1 + max(0, len(inner) - 1) + members + sum(map(marks, inner))


@given(VALUES)
def test_the_marks_outside_of_strings_are_counted_exactly(value: object) -> None:
    for ascii_only in (True, False):
        data = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        assert not holds_more(data, marks(value))
        assert holds_more(data, marks(value) - 1)


@pytest.mark.parametrize(
    ("data", "most"),
    [
        (b'["' + b"a, [b]: {c}, " * 1000 + b'"]', 1),
        (rb'["\",\",\\",1]', 2),
        (b'["' + b'\\"' * 1000 + b',,,"]', 1),
    ],
    ids=["prose", "quotes in strings", "many quotes in strings"],
)
def test_what_stands_in_a_string_is_no_value(data: bytes, most: int) -> None:
    assert not holds_more(data, most)
    assert holds_more(data, most - 1)


@pytest.mark.parametrize(
    "data",
    [b'["' + b'\\"' * 2**20, b'"' * 2**20, b'"\\' * 2**20, b",\\" * 2**20, b""],
    ids=["unclosed", "quotes", "backslashes", "outside", "empty"],
)
def test_what_is_no_json_is_looked_at_once(data: bytes) -> None:
    """A look that began anew at each quote of 1 MB would not end within this test's time limit."""
    assert holds_more(data, 10) in {True, False}


def test_bodies_are_counted_together() -> None:
    assert not together_hold_more([b"[1,2]", b"[]"], 3)
    assert together_hold_more([b"[1,2]", b"[]"], 2)
    assert not together_hold_more([], 0)
