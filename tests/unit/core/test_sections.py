"""Headings as models really write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.sections import TITLES, UP_TO_TITLES, Heading, headings, without_headings


@pytest.mark.parametrize("titles", [TITLES, UP_TO_TITLES])
def test_every_title_is_found_under_its_number(titles: tuple[str, ...]) -> None:
    text = "\n".join(f"{number}. {title}:\n   body" for number, title in enumerate(titles, 1))
    assert [heading.number for heading in headings(text)] == list(range(1, 10))


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("4. Errors and fixes:", 4),  # letter case varies in real summaries
        ("6. ALL USER MESSAGES", 6),
        ("## 3. Files and Code Sections", 3),
        ("**7. Pending Tasks:**", 7),
        ("7. **Pending Tasks (from the list)**:", 7),
        ("   1) Primary Request and Intent: to port the parser", 1),
        ("> 8. Current Work:", 8),
        ("4. Error & Fixes:", 4),
        ("9. Optional Next Steps:", 9),
        ("Problem Solving:", 5),
        ("Key Technical Concepts", 2),
        ("8 Current Work：", 8),  # noqa: RUF001 - a full-width colon
        ("3. Pending Tasks:", 7),  # the title decides, not the number
    ],
)
def test_variants_of_a_heading_are_found(line: str, number: int) -> None:
    assert [heading.number for heading in headings(f"before\n{line}\nafter")] == [number]


@pytest.mark.parametrize(
    "line",
    [
        "Current work is going on",
        "the pending tasks:",
        "1. Read the file",
        "- Pending Tasks: none",
        "10. Workflow",
        "8. Currentwork",
        "7. Pend\u0131ng Tasks",  # a dotless i is another letter
    ],
)
def test_other_lines_are_no_headings(line: str) -> None:
    assert headings(line) == ()


def test_a_plural_of_the_title_is_the_same_heading() -> None:
    assert headings("8. Current Works") == (Heading(8, 0, 16),)


def test_a_heading_says_where_its_title_ends() -> None:
    text = "x\n8. Current Work: testing"
    assert headings(text) == (Heading(8, 2, 17),)
    assert without_headings(text) == "x\n: testing"


def test_text_without_headings_stays() -> None:
    assert without_headings("nothing here") == "nothing here"


@settings(deadline=None)  # shared machines stall
@given(st.text())
def test_taking_the_headings_out_leaves_every_other_character(text: str) -> None:
    titles = sum(heading.end - heading.start for heading in headings(text))
    assert len(without_headings(text)) == len(text) - titles
