"""The made-up project's files: read, searched and edited by the sample's tool calls, so that every result is true."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from fnmatch import fnmatch

from compaction.cli.sample.modules import log_text, module_text, tests_text
from compaction.cli.sample.scenario import table

CONTEXT_LINES = 4  # shown around an edit


class Tree:
    """Paths and texts. Edits must fit: an old text that is not there exactly once is a mistake in the scenario."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def text(self, path: str) -> str:
        """The whole file."""
        return self._files[path]

    def lines(self, path: str) -> list[str]:
        """The file's lines without their ends."""
        return self._files[path].split("\n")[:-1]

    def write(self, path: str, text: str) -> None:
        """Create or replace a file."""
        self._files[path] = text

    def edit(self, path: str, old: str, new: str) -> str:
        """Replace the one place where `old` stands; the lines around it, numbered, as the tool shows them."""
        text = self._files[path]
        if text.count(old) != 1:
            raise ValueError(f"{path}: the text to replace stands there {text.count(old)} times")
        self._files[path] = text.replace(old, new)
        first = text[: text.index(old)].count("\n")
        shown = slice(max(0, first - CONTEXT_LINES), first + new.count("\n") + CONTEXT_LINES)
        return numbered(self.lines(path)[shown], shown.start + 1)

    def glob(self, pattern: str) -> list[str]:
        """Paths that fit, sorted."""
        return sorted(path for path in self._files if fnmatch(path, pattern.replace("**/", "*")))

    def grep(self, pattern: str, under: str) -> Iterator[str]:
        """`path:line:text` for each line that fits, below a folder or in one file."""
        wanted = re.compile(pattern)
        for path in sorted(self._files):
            if path == under or path.startswith(f"{under}/") or not under:
                for number, row in enumerate(self.lines(path), start=1):
                    if wanted.search(row):
                        yield f"{path}:{number}:{row}"

    def tests_in(self, path: str) -> list[str]:
        """The names of the tests in a file or folder, as pytest calls them."""
        found = []
        for name in sorted(self._files):
            if name == path or (name.startswith(f"{path}/") and name.rsplit("/", 1)[-1].startswith("test_")):
                found += [f"{name}::{test}" for test in re.findall(r"^def (test_\w+)", self._files[name], re.MULTILINE)]
        return found


def numbered(rows: list[str], first: int = 1) -> str:
    """Lines with their numbers, as reading tools print them."""
    return "\n".join(f"{number:6d}→{row}" for number, row in enumerate(rows, start=first))


def project(rng: random.Random) -> Tree:
    """The project before the session begins."""
    listed = table("tree.toml")
    files = {row["path"]: row["text"] for row in listed["file"]}
    files |= {row["path"]: module_text(rng, row["noun"], row["about"], row["chars"]) for row in listed["module"]}
    files |= {row["path"]: tests_text(rng, row["noun"], row["chars"]) for row in listed["tests"]}
    files |= {row["path"]: log_text(rng, row["kind"], row["lines"]) for row in listed["log"]}
    return Tree(files)
