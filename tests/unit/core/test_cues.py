"""Sentences, and the words by which they show what they are."""

from __future__ import annotations

import pytest

from compaction.core.cues import MAX_SENTENCE_CHARS, has_cue, sentences


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Port it. Then test it! Does it work?", ["Port it.", "Then test it!", "Does it work?"]),
        ("See e.g. the reader, i.e. the new one.", ["See e.g. the reader, i.e. the new one."]),
        ("检查日志。然后修改。", ["检查日志。", "然后修改。"]),
        ("- use tabs\n* be brief\n1) run it\n## Rules\n[x] done", ["use tabs", "be brief", "run it", "Rules", "done"]),
        ("Before.\n```\nNever mind the code.\n```\nBehind.", ["Before.", "Behind."]),
        ('Before.\n"""\nNever mind the docstring.\n"""\nBehind.', ["Before.", "Behind."]),
        ("x" * (MAX_SENTENCE_CHARS + 1), []),
        ("x" * MAX_SENTENCE_CHARS, ["x" * MAX_SENTENCE_CHARS]),
        ("", []),
    ],
)
def test_prose_falls_into_sentences(text: str, found: list[str]) -> None:
    assert sentences(text) == found


def test_a_hard_wrapped_sentence_is_one() -> None:
    first = "When you change the configuration of the service"
    assert len(first) < 50
    assert sentences(f"{first} at all\nnever touch the values.") == [f"{first} at all never touch the values."]
    assert sentences(f"{first}\nnever touch the values.") == [first, "never touch the values."]


@pytest.mark.parametrize(
    ("sentence", "shows"),
    [
        ("Never touch the API.", True),
        ("Don’t touch the API.", True),
        ("Fass die API niemals an.", True),
        ("Ne touche jamais à l'API.", True),
        ("絶対に変更しないで。", True),
        ("The API is fine.", False),
    ],
)
def test_a_cue_shows_in_many_languages(sentence: str, shows: bool) -> None:
    assert has_cue(sentence, "constraints") is shows


def test_each_kind_has_its_own_cues() -> None:
    assert has_cue("Actually, use the other one instead.", "changes")
    assert has_cue("The root cause is a missing lock.", "decisions")
    assert has_cue("Next, I will run the tests.", "promises")
    assert not has_cue("Next, I will run the tests.", "changes")
