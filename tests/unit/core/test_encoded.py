"""Encoded data in texts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.encoded import SHOWN_CHARS, WINDOW_CHARS, shorten_encoded

RUN = "QUJD" * 1_000  # 4,000 characters of base64


@pytest.mark.parametrize("text", ["", "short", "a" * 1_000, "word " * 5_000, "检查" * 5_000, ("x" * 800 + "\n") * 20])
def test_ordinary_text_is_the_same_object(text: str) -> None:
    assert shorten_encoded(text) is text


@pytest.mark.parametrize("before", ["", "data: ", "word " * 700, "y" * 500 + " "])
@pytest.mark.parametrize("after", ["", " and then", "\n" + "word " * 700])
def test_a_run_keeps_its_two_ends_and_its_surroundings(before: str, after: str) -> None:
    shortened = shorten_encoded(before + RUN + after)
    left_out = 4_000 - 2 * 64
    assert shortened == f"{before}{RUN[:64]}[… {left_out:,} characters of encoded data …]{RUN[-64:]}{after}"


def test_every_run_of_a_text_is_shortened() -> None:
    shortened = shorten_encoded(f"{RUN} between {RUN}\n{RUN}")
    assert shortened.count("3,872 characters of encoded data") == 3
    assert " between " in shortened


@settings(deadline=None)
@given(st.integers(0, 3_000), st.integers(2 * WINDOW_CHARS, 9_000), st.integers(0, 3_000))
def test_a_run_of_two_windows_is_found_wherever_it_stands(before: int, run: int, after: int) -> None:
    shortened = shorten_encoded(" " * before + "A" * run + " " * after)
    assert len(shortened) < before + after + 2 * SHOWN_CHARS + 60
    assert shortened.startswith(" " * before + "A" * SHOWN_CHARS + "[")
    assert shortened.endswith("]" + "A" * SHOWN_CHARS + " " * after)
