"""The words that a person typed, without what clients put around them."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.core.speech import MAX_ELEMENTS, spoken, typed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  Port it.\n", "Port it."),
        ("a < b", "a < b"),
        ("<system-reminder>Be careful.</system-reminder>Port it.", "Port it."),
        ("Port <ide_selection>x</ide_selection>it<ide_selection>y</ide_selection>.", "Port it."),
        ("Port it. <system-reminder>not closed", "Port it."),
        ("Port <file>it.", "Port <file>it."),
        ('<file path="a.py">x = 1</file>Port it.', "Port it."),
        ("<command-name>review</command-name><command-args>42 now</command-args>", "/review 42 now"),
        ("<command-name>/review</command-name>", "/review"),
        ("<command-name>/clear</command-name><command-args></command-args>", ""),
        ("<bash-input>ls -l</bash-input>", "! ls -l"),
    ],
)
def test_inserted_elements_are_no_words(text: str, said: str) -> None:
    assert spoken(text) == said


def test_behind_too_many_elements_nothing_counts_as_said() -> None:
    element = "<bash-stdout>x</bash-stdout>"
    assert spoken(element * MAX_ELEMENTS) == ""
    assert spoken(f"Port it. {element * (MAX_ELEMENTS + 1)} And this.") == "Port it."


def test_media_are_named_and_results_are_not_typed() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": "t", "content": "output"},
        {"type": "text", "text": "Look at this."},
        {"type": "text", "text": None},
        {"type": "text", "text": "<system-reminder>Hm.</system-reminder>"},
        {"type": "image", "source": {}},
        {"type": "document", "source": {}},
    ]
    assert typed(blocks) == "Look at this.\n\n[image attached]\n\n[document attached]"
