"""The texts beside the program."""

from __future__ import annotations

from importlib.resources import files

from compaction.core import wording
from compaction.core.wording import NAMES, TEXTS


def test_every_file_is_a_named_text_and_every_name_has_its_file() -> None:
    folder = files("compaction.core").joinpath("texts")
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".txt"))
    assert names == [f"{name}.txt" for name in NAMES]


def test_no_text_is_empty_or_padded() -> None:
    assert all(text and text == text.strip() for text in TEXTS.values())


def test_the_fingerprint_is_one_for_all_texts() -> None:
    assert wording.fingerprint() == wording.fingerprint()
    assert len(wording.fingerprint()) == 64
