"""The made-up project behind the sample: every tool result is true to its files."""

from __future__ import annotations

import random

import pytest

from compaction.cli.sample.pytest_output import pytest_output
from compaction.cli.sample.tree import Tree, numbered, project

SUM = "def add(a, b):\n    return a - b\n"


def small() -> Tree:
    return Tree(
        {"shop/sum.py": SUM, "tests/test_sum.py": "def test_add() -> None:\n    pass\n", "logs/a.log": "x\ny\n"}
    )


def test_an_edit_replaces_the_one_place_and_shows_its_surroundings() -> None:
    tree = small()

    assert tree.edit("shop/sum.py", "a - b", "a + b") == "     1→def add(a, b):\n     2→    return a + b"
    assert tree.text("shop/sum.py") == "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize("old", ["a * b", "a"])
def test_an_edit_that_does_not_fit_exactly_once_is_a_mistake_in_the_scenario(old: str) -> None:
    with pytest.raises(ValueError, match="stands there"):
        small().edit("shop/sum.py", old, "x")


def test_grep_tells_path_line_and_text_below_a_folder_or_in_one_file() -> None:
    tree = small()

    assert list(tree.grep("return", "shop")) == ["shop/sum.py:2:    return a - b"]
    assert list(tree.grep("y", "logs/a.log")) == ["logs/a.log:2:y"]
    assert list(tree.grep("def ", "")) == [
        "shop/sum.py:1:def add(a, b):",
        "tests/test_sum.py:1:def test_add() -> None:",
    ]


def test_glob_finds_files_at_any_depth() -> None:
    assert small().glob("**/*.py") == ["shop/sum.py", "tests/test_sum.py"]


def test_lines_are_numbered_from_one() -> None:
    assert numbered(["a", "b"]) == "     1→a\n     2→b"


def test_a_test_run_lists_the_tests_that_stand_in_the_files_now() -> None:
    failure = {"test": "tests/test_sum.py::test_add", "error": "    assert add(1, 1) == 2\nE   assert 0 == 2\n"}
    output = pytest_output(small(), random.Random(1), ["tests"], [failure], verbose=True)

    assert "collected 1 items" in output
    assert "tests/test_sum.py::test_add FAILED" in output
    assert "FAILED tests/test_sum.py::test_add - assert 0 == 2" in output
    assert "1 failed in" in output
    assert "passed" not in output


def test_the_project_is_the_same_for_a_seed_and_its_modules_are_code() -> None:
    tree = project(random.Random(5))

    assert tree.text("invoicing/outbox.py") == project(random.Random(5)).text("invoicing/outbox.py")
    for path in tree.glob("**/*.py"):
        compile(tree.text(path), path, "exec")
