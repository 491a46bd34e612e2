"""docs/decisions/README.md lists every decision by its title; each has its parts and names what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "decisions"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))
LISTED = re.findall(r"^\| \[(\d{4})\]\(([\w-]+\.md)\) \| (.+) \|$", (FOLDER / "README.md").read_text(), re.MULTILINE)
MAX_LINES = 60  # one page


def title(page: Path) -> str:
    """What the first line says behind the number."""
    found = re.match(r"# (\d{4}) (.+)\n", page.read_text(encoding="utf-8"))
    assert found is not None, page.name
    assert found[1] == page.name[:4]
    return found[2]


def test_the_list_is_that_of_the_folder_in_its_order() -> None:
    assert [(number, name, words) for number, name, words in LISTED] == [
        (page.name[:4], page.name, title(page)) for page in PAGES
    ]


def test_no_number_is_used_twice() -> None:
    numbers = [page.name[:4] for page in PAGES]

    assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_decision_is_a_page_with_context_decision_and_consequences(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for part in ("Context", "Decision", "Consequences", "Enforced by"):
        assert re.search(rf"\*\*{part}\b", text), part
    assert text.count("\n") <= MAX_LINES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_tests_that_a_decision_names_exist(page: Path) -> None:
    named = re.findall(r"`(tests/[\w/.]+?)`", page.read_text(encoding="utf-8"))

    assert [name for name in named if not (ROOT / name).exists()] == []
