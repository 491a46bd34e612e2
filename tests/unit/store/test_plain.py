"""Text and JSON for Postgres: refused with the field's name when it is a caller's, mended when it is our own record."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import errors
from compaction.core.jsonbytes import Json
from compaction.store import plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)
ODD_TEXT = st.text(alphabet=st.sampled_from('a\\u0\x00\ud83d\udfff"n'), max_size=12)
ODD_VALUES = st.recursive(ODD_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ODD_TEXT, inner), max_leaves=8)


def carried(text: str) -> bool:
    """Whether Postgres would take the text: no NUL, and UTF-8 can write it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def strings(value: Json) -> list[str]:
    """All strings in a JSON value, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in strings(part)]
    return [text for item in value for text in strings(item)] if isinstance(value, list) else []


@given(ODD_TEXT)
def test_text_is_refused_exactly_when_postgres_cannot_carry_it(value: str) -> None:
    if carried(value):
        assert plain.text("field", value) == value
    else:
        with pytest.raises(errors.InvalidRequest, match=r"^field "):
            plain.text("field", value)


def test_a_missing_text_is_fine() -> None:
    assert plain.optional_text("field", None) is None


@given(VALUES)
def test_json_that_can_be_carried_is_written_unchanged(value: Json) -> None:
    if all(map(carried, strings(value))):
        assert json.loads(plain.json_text("field", value)) == value
        assert json.loads(plain.mended_json_text(value)) == value


@given(ODD_VALUES)
def test_json_is_refused_or_mended_exactly_when_a_string_in_it_cannot_be_carried(value: Json) -> None:
    mended = json.loads(plain.mended_json_text(value))
    assert all(map(carried, strings(mended)))
    if all(map(carried, strings(value))):
        assert plain.json_text("field", value)
        assert mended == value
    else:
        with pytest.raises(errors.InvalidRequest, match=r"^field "):
            plain.json_text("field", value)


def test_words_that_only_look_like_an_escape_are_carried() -> None:
    assert json.loads(plain.json_text("field", {"path": "C:\\u0000"})) == {"path": "C:\\u0000"}


@pytest.mark.parametrize("value", [{"big": "x" * plain.MAX_JSON_BYTES}, {"odd": object()}, float("nan")])
def test_what_is_too_large_or_no_json_is_refused_or_left_out(value: Json) -> None:
    if value != value:  # noqa: PLR0124 - NaN alone differs from itself
        assert plain.mended_json_text(value) == "null"
        return
    with pytest.raises(errors.InvalidRequest):
        plain.json_text("field", value)
    assert plain.mended_json_text(value) == '{"omitted":true}'


def test_an_error_never_quotes_the_value() -> None:
    with pytest.raises(errors.InvalidRequest) as caught:
        plain.text("field", "private\0words")
    assert "private" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ("01a22e20-6164-7815-8f5a-b3be3a1b91dc", "01a22e20-6164-7815-8f5a-b3be3a1b91dc"),
        ("01A22E20-6164-7815-8F5A-B3BE3A1B91DC", "01a22e20-6164-7815-8f5a-b3be3a1b91dc"),
        ("01a22e2061647815-8f5a-b3be3a1b91dc", None),
        ("01a22e20-6164-7815-8f5a-b3be3a1b91dc\n", None),
        ("{01a22e20-6164-7815-8f5a-b3be3a1b91dc}", None),
        ("", None),
    ],
)
def test_a_job_id_is_a_uuid_in_its_usual_form(value: str, known: str | None) -> None:
    assert plain.job_id(value) == known
