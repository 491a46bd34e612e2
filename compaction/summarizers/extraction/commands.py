"""Shell commands as a reader counts them: what was run, which runs check the same, and how the last one ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compaction.summarizers.extraction.excerpts import bullet, code, line
from compaction.summarizers.extraction.items import Item
from compaction.summarizers.extraction.outcomes import Outcome, telling_lines

MAX_PARSED_CHARS = 1_000  # of a command, what is looked at; the rest is a here-document
MAX_SHOWN_CHARS = 160  # of a command in a list
MAX_VERDICT_CHARS = 160  # of the last line of a run's output
_SEPARATOR = re.compile(r"\s*(?:&&|\|\||;|\n)\s*")
_REDIRECTION = re.compile(r"\s*(?:\d?>{1,2}\s*\S+|\d?>&\d|<\s*\S+)")
_PREFIX = re.compile(r"^(?:(?:sudo|time|nohup|exec|env|command|then|do)\s+|timeout\s+\S+\s+|[A-Za-z_]\w*=\S*\s+)+")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*(?:\"|$)|'[^']*(?:'|$)")  # an unclosed quote goes to the end
_WORD = re.compile(r"[A-Za-z][\w:.-]*")
_QUIET = {
    ".",
    "cd",
    "echo",
    "exit",
    "export",
    "mkdir",
    "printf",
    "pwd",
    "set",
    "sleep",
    "source",
    "true",
    "unset",
    "wait",
}
_VIEWING_PROGRAMS = {
    "awk",
    "cat",
    "diff",
    "find",
    "grep",
    "head",
    "jq",
    "journalctl",
    "less",
    "ls",
    "rg",
    "sed",
    "tail",
    "wc",
}
_VIEWING_FAMILIES = {
    "git log",
    "git diff",
    "git show",
    "git status",
    "git blame",
    "git branch",
    "docker logs",
    "kubectl logs",
}
_RUNNERS = {"bundle", "mise", "npm", "pnpm", "poetry", "python", "python3", "uv", "yarn"}  # word three names the check
_INTERPRETERS = {"bash", "curl", "deno", "node", "perl", "python", "python3", "ruby", "sh"}  # the file says what is run
_RUNNER_WORDS, _FAMILY_WORDS = 3, 2  # `npm run build`, but `go test` and `cargo build`


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a command: its place in the timeline and how it ended."""

    place: int
    command: str
    outcome: Outcome


def steps_of(command: str) -> list[str]:
    """The commands that a shell line chains, quotes emptied, without `cd`, `echo`, redirections, ends of pipes."""
    bare = _QUOTED.sub('""', command[:MAX_PARSED_CHARS]).split("<<", 1)[0]
    steps = []
    for part in _SEPARATOR.split(bare):
        step = _PREFIX.sub("", _REDIRECTION.sub("", part.split("|", 1)[0]) + " ").strip()
        if step and step.split()[0] not in _QUIET and not step.startswith(("#", '"')):
            steps.append(step)
    return steps


def family(step: str) -> str:
    """The words that name a check, without paths and options: `pytest`, `go test`, `npm run build`."""
    words = step.split()
    program = words[0].rstrip("/").rsplit("/", 1)[-1] or words[0]
    chosen = [program]
    for word in words[1 : _RUNNER_WORDS if program in _RUNNERS else _FAMILY_WORDS]:
        if word in ("run", "-m", "exec") or _is_plain(word):
            chosen.append(word)
        else:
            break
    if len(chosen) == 1 and program in _INTERPRETERS:
        chosen += [word for word in words[1:] if not word.startswith("-")][:1]
    return " ".join(chosen)


def families(command: str) -> frozenset[str]:
    """The families of all steps of a shell line."""
    return frozenset(family(step) for step in steps_of(command))


def is_viewing(command: str) -> bool:
    """Whether the command only shows something: what it prints is no verdict on itself."""
    steps = steps_of(command)
    return all(family(step).split()[0] in _VIEWING_PROGRAMS or family(step) in _VIEWING_FAMILIES for step in steps)


def verdict(outcome: Outcome) -> str:
    """In words how a run ended, with the line of its output that says so."""
    if outcome.verdict == "rejected":
        return "refused by the user"
    if outcome.verdict == "open":
        return "no result yet"
    if outcome.failed:
        return f"FAILED: {line(' '.join(telling_lines(outcome.text, 1)), MAX_VERDICT_CHARS)}".rstrip(": ")
    rows = [row for row in outcome.text.splitlines() if row.strip()]
    return f"ok: {line(rows[-1].strip('= '), MAX_VERDICT_CHARS)}" if rows else "ok, no output"


def items(runs: Sequence[Run]) -> list[Item]:
    """Each command that did more than show something, once: how often it ran and how its last run ended."""
    last: dict[str, Run] = {}
    counts: dict[str, int] = {}
    for run in runs:
        key = line(run.command, MAX_PARSED_CHARS)
        if is_viewing(run.command):
            continue
        last.pop(key, None)  # the newest run moves to the end
        last[key] = run
        counts[key] = counts.get(key, 0) + 1
    return [_item(run, counts[key]) for key, run in last.items()]


def _item(run: Run, count: int) -> Item:
    times = f"{count}×, last: " if count > 1 else ""
    return Item(bullet(f"Ran {code(run.command, MAX_SHOWN_CHARS)}: {times}{verdict(run.outcome)}"))


def _is_plain(word: str) -> bool:
    return _WORD.fullmatch(word) is not None and "." not in word and not word.startswith("-")
