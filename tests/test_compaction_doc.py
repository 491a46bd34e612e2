"""docs/compaction.md tells the truth: the tests, files and pages that it names exist, and every rule names a test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "compaction.md").read_text("utf-8")
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", TEXT)


def names_in(name: str) -> set[str]:
    """The names of the tests in a file under tests/unit."""
    tree = ast.parse((ROOT / "tests" / "unit" / name).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_test_that_the_page_names_exists() -> None:
    found = {name: names_in(name) for name, _ in NAMED if (ROOT / "tests" / "unit" / name).is_file()}

    assert [f"{name}::{test}" for name, test in NAMED if test not in found.get(name, set())] == []


def test_every_rule_names_its_test() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith("| rule")]

    assert len(rows) > 80
    assert [row for row in rows if "::test_" not in row] == []


def test_every_file_that_the_page_names_exists() -> None:
    files = re.findall(r"`(core/\w+\.py|\w+\.py)`", TEXT)

    assert [name for name in files if not (ROOT / "compaction" / name).is_file()] == []
    links = re.findall(r"\]\(([\w./-]+)\)", TEXT)
    assert [link for link in links if not (ROOT / "docs" / link).is_file()] == []
