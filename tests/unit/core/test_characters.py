"""Characters and numbers that cannot be sent."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from compaction.core.characters import clean_text, clean_value, is_clean


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        ("a\0b", "a\ufffdb"),
        ("cut \ud83d here", "cut \ufffd here"),
        ("\udc00", "\ufffd"),
        ("end \ud83d", "end \ufffd"),
        ("\ud83d\ude00", "😀"),  # two halves that belong together
        ("\ud83d\ud83d\ude00\0", "\ufffd😀\ufffd"),
    ],
)
def test_bad_characters_become_the_replacement_character(stored: str, sent: str) -> None:
    tally: Counter[str] = Counter()
    assert clean_text(stored, tally) == sent
    assert tally == {"characters_replaced": 1}


@pytest.mark.parametrize("text", ["", "plain", "naïve", "检查", "🙂", "\ufffd"])
def test_good_text_is_the_same_object(text: str) -> None:
    tally: Counter[str] = Counter()
    assert clean_text(text, tally) is text
    assert not tally


def test_a_clean_value_is_the_same_object() -> None:
    value = {"a": [1, 2.5, None, True, "é"], "b": {"c": []}}
    tally: Counter[str] = Counter()
    assert clean_value(value, tally, drop_marks=True) is value
    assert not tally


def test_keys_and_values_are_cleaned_at_any_depth() -> None:
    tally: Counter[str] = Counter()
    value = {"k\0": [{"x": "\ud83d"}, math.inf, 1.5], "n": math.nan}
    assert clean_value(value, tally) == {"k\ufffd": [{"x": "\ufffd"}, None, 1.5], "n": None}
    assert tally == {"characters_replaced": 2, "numbers_replaced": 2}


def test_keys_that_become_equal_both_stay() -> None:
    assert clean_value({"a\0": 1, "a\ufffd": 2}, Counter()) == {"a\ufffd": 1, "a\ufffd\ufffd": 2}


def test_marks_go_when_asked() -> None:
    tally: Counter[str] = Counter()
    marked = {"cache_control": {"type": "ephemeral"}, "content": [{"cache_control": None, "text": "x"}]}
    assert clean_value(marked, tally) is marked
    assert clean_value(marked, tally, drop_marks=True) == {"content": [{"text": "x"}]}
    assert tally == {"cache_marks_dropped": 2}


@pytest.mark.parametrize("value", ["\0", {"\0": 1}, ["\udc00"], math.nan, {"a": [math.inf]}])
def test_what_would_change_is_not_clean(value: Any) -> None:  # noqa: ANN401 - any JSON
    assert not is_clean(value)


def test_nesting_up_to_the_limit_is_cleaned() -> None:
    value: Any = "\0"
    for _ in range(400):
        value = [value]
    assert not is_clean(value)
    cleaned = clean_value(value, Counter())
    for _ in range(400):
        cleaned = cleaned[0]
    assert cleaned == "\ufffd"
