"""Texts cut to a budget of tokens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core import excerpt, tokens

# Four ASCII letters are a token, a line break is three quarters of one (core/tokens.py).


def test_a_text_within_its_budget_is_returned_as_it_is() -> None:
    text = "word" * 100
    assert excerpt.cut(text, 100) is text


def test_a_longer_one_keeps_its_beginning_and_says_what_is_missing() -> None:
    """The mark takes 20 tokens at most, so 80 tokens of text stay: 320 letters of 404."""
    assert excerpt.MARK_TOKENS <= 20
    cut = excerpt.cut("word" * 101, 100)
    kept, _, mark = cut.partition("\n")
    assert kept == ("word" * 101)[: len(kept)]
    assert len(kept) >= 320
    assert mark == f"[… {404 - len(kept)} characters left out …]"
    assert tokens.estimate_text(cut) <= 100


def test_a_cut_goes_back_to_the_end_of_a_line() -> None:
    cut = excerpt.cut("line\n" * 200, 100)
    assert cut.startswith("line\nline\n")
    assert "\nline\n[… " in cut


def test_one_long_line_is_cut_inside() -> None:
    assert excerpt.cut(f"title\n{'x' * 10_000}", 200).startswith("title\nxxx")


@pytest.mark.parametrize("budget", [-5, 0, 1])
def test_without_room_only_the_mark_is_left(budget: int) -> None:
    assert excerpt.cut("some text", budget) == "[… 9 characters left out …]"


@settings(deadline=None)
@given(st.text(max_size=3_000), st.integers(excerpt.MARK_TOKENS, 600))
def test_every_cut_fits_and_is_a_beginning(text: str, budget: int) -> None:
    cut = excerpt.cut(text, budget)
    assert tokens.estimate_text(cut) <= budget
    if cut != text:
        head, _, mark = cut.rpartition("[… ")
        assert text.startswith(head.removesuffix("\n"))
        missing = int(mark.split()[0])
        assert missing == len(text) - len(head.removesuffix("\n")) or missing == len(text) - len(head)
