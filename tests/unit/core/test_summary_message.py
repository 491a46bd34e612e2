"""The summary's place in the history: wrapped, found again, never nested."""

from __future__ import annotations

import pytest

from compaction.core import sections, summary
from compaction.core.messages import Message
from compaction.core.wording import TEXTS


def nine(**bodies: str) -> str:
    """Nine sections; `s3="…"` sets the body of the third."""
    lines = []
    for number, title in enumerate(sections.TITLES, 1):
        lines.append(f"{number}. {title}:\n   {bodies.get(f's{number}', 'told above')}")
    return "\n".join(lines)


def message(text: str) -> Message:
    return Message(role="user", content=text, is_compact_summary=True)


BODY = nine(s1="Port the parser.")


@pytest.mark.parametrize("kept_tail", [False, True])
@pytest.mark.parametrize("kept_earlier", [False, True])
@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize("pinned", [(), ("Never touch the public API.", "Use tabs.")])
def test_the_summary_comes_back_out_of_its_message(
    kept_tail: bool, kept_earlier: bool, auto: bool, pinned: tuple[str, ...]
) -> None:
    text = summary.compact_text(BODY, kept_tail=kept_tail, kept_earlier=kept_earlier, auto=auto, pinned=pinned)
    assert summary.extract_summary_text(message(text)) == BODY
    assert (TEXTS["recent_kept"] in text) is kept_tail
    assert (TEXTS["earlier_kept"] in text) is kept_earlier
    assert (TEXTS["carry_on"] in text) is auto
    assert all(f"\n- {constraint}" in text for constraint in pinned)


def test_the_message_reads_in_order() -> None:
    text = summary.compact_text(BODY, kept_tail=True, auto=True, pinned=("P",))
    places = [
        text.index(part) for part in (TEXTS["continuation"], "- P", BODY, TEXTS["recent_kept"], TEXTS["carry_on"])
    ]
    assert places == sorted(places)
    assert "<summary>" not in text


def test_thirty_one_levels_become_one() -> None:
    text = BODY
    for _ in range(31):
        text = summary.compact_text(text, auto=True, kept_tail=True)
    assert text == summary.compact_text(BODY, auto=True, kept_tail=True)
    assert summary.extract_summary_text(message(text)) == BODY


def test_a_summary_that_quotes_our_heading_keeps_it() -> None:
    body = nine(s3=f"The message begins with\n{summary.HEADING}\nand so on.")
    text = summary.compact_text(body)
    assert summary.extract_summary_text(message(text)) == body


def test_blocks_of_a_summary_message_are_joined() -> None:
    blocks = [{"type": "text", "text": "The schema was agreed."}, {"type": "image"}, {"type": "text", "text": "More."}]
    found = summary.extract_summary_text(Message(role="user", content=blocks, is_compact_summary=True))
    assert found == "The schema was agreed.\n\nMore."


def test_another_systems_summary_is_taken_from_its_first_section_on() -> None:
    text = f"This conversation was continued.\n\nAnalysis:\n1. The user asked.\n\nSummary:\n{BODY}\n\nGo on please."
    assert summary.extract_summary_text(message(text)) == f"{BODY}\n\nGo on please."


def test_another_systems_summary_without_sections_is_taken_as_it_is() -> None:
    assert summary.extract_summary_text(message(" Work so far: PRIOR ")) == "Work so far: PRIOR"


@pytest.mark.parametrize("text", ["", "  \n", f"x\n{summary.HEADING}\n  "])
def test_an_empty_summary_message_holds_none(text: str) -> None:
    assert summary.extract_summary_text(message(text)) is None


def test_a_message_that_is_no_summary_holds_none() -> None:
    assert summary.extract_summary_text(Message(role="user", content=summary.compact_text(BODY))) is None
