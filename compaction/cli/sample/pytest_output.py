"""What a test run prints, for the tests that stand in the sample's files at that moment."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from compaction.cli.sample.tree import Tree

WIDTH_CHARS = 78  # of a rule with a title
HEAD = "platform linux -- Python 3.12.9, pytest-8.3.5, pluggy-1.5.0"


def pytest_output(
    tree: Tree, rng: random.Random, paths: Sequence[str], failures: Sequence[Mapping[str, str]], *, verbose: bool
) -> str:
    """The output; `failures` hold `test` (an id) and `error` (the lines between the rules)."""
    failed = {failure["test"].split("[")[0]: failure for failure in failures}
    tests = [test for path in paths for test in tree.tests_in(path)]
    lines = [_rule("test session starts", "="), HEAD, f"collected {len(tests)} items", ""]
    lines += _verbose(tests, failed) if verbose else _dotted(tests, failed)
    if failures:
        lines += ["", _rule("FAILURES", "=")]
        for failure in failures:
            lines += [_rule(failure["test"].rsplit("::", 1)[-1], "_"), "", failure["error"].rstrip()]
        lines += [_rule("short test summary info", "=")]
        lines += [f"FAILED {failure['test']} - {_reason(failure['error'])}" for failure in failures]
    lines.append(_rule(_counts(len(tests) - len(failures), len(failures), rng), "="))
    return "\n".join(lines)


def _verbose(tests: Sequence[str], failed: Mapping[str, object]) -> list[str]:
    lines = []
    for number, test in enumerate(tests, start=1):
        state = "FAILED" if test in failed else "PASSED"
        lines.append(f"{test} {state}".ljust(WIDTH_CHARS - 8) + f" [{100 * number // len(tests):3d}%]")
    return lines


def _dotted(tests: Sequence[str], failed: Mapping[str, object]) -> list[str]:
    marks: dict[str, str] = {}
    for test in tests:
        path = test.split("::")[0]
        marks[path] = marks.get(path, "") + ("F" if test in failed else ".")
    lines, done = [], 0
    for path, row in marks.items():
        done += len(row)
        lines.append(f"{path} {row}".ljust(WIDTH_CHARS - 8) + f" [{100 * done // len(tests):3d}%]")
    return lines


def _reason(error: str) -> str:
    told = [line[1:].strip() for line in error.splitlines() if line.startswith("E ")]
    return told[-1][:120] if told else "failed"


def _counts(passed: int, failed: int, rng: random.Random) -> str:
    counts = [f"{failed} failed"] * bool(failed) + [f"{passed} passed"] * bool(passed)
    return f"{', '.join(counts)} in {rng.uniform(1.1, 9.8):.2f}s"


def _rule(title: str, mark: str) -> str:
    return f" {title} ".center(WIDTH_CHARS, mark)
