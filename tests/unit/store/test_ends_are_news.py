"""Whoever ends a job writes its news: a new statement that ends jobs cannot forget the outbox."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ENDS = re.compile(r"update\(jobs\)(?:(?!update\().)*?\bended_at=", re.DOTALL)
NEWS = "outbox.news("


def sources(repository: Path) -> dict[str, str]:
    return {
        path.name: path.read_text(encoding="utf-8") for path in sorted((repository / "compaction/store").glob("*.py"))
    }


def test_each_statement_that_ends_jobs_takes_the_outbox_along(repository: Path) -> None:
    counted = {name: (len(ENDS.findall(text)), text.count(NEWS)) for name, text in sources(repository).items()}
    ending = {name: counts for name, counts in counted.items() if counts != (0, 0)}
    assert {name: counts for name, counts in ending.items() if counts[0] != counts[1]} == {}
    assert set(ending) == {"finishing.py", "job_ends.py"}


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("update(jobs).where(x).values(status=y, ended_at=func.now())", 1),
        ("update(jobs).values(status=y)\nupdate(attempts).values(ended_at=func.now())", 0),
        ("update(jobs).values(ended_at=a)\nupdate(jobs).values(ended_at=b)", 2),
    ],
)
def test_the_search_finds_ends_and_nothing_else(text: str, ends: int) -> None:
    assert len(ENDS.findall(text)) == ends
