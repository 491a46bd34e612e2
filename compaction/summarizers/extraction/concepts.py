"""Languages, libraries, programs and names that the session turned around (section 2)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

from compaction.summarizers.extraction.commands import family, steps_of
from compaction.summarizers.extraction.excerpts import bullet, line
from compaction.summarizers.extraction.items import Item
from compaction.summarizers.extraction.prior import Prior
from compaction.summarizers.extraction.timeline import Timeline

_SUFFIXES = {
    "Python": "py pyi ipynb",
    "TypeScript": "ts mts",
    "React": "tsx jsx",
    "JavaScript": "js mjs cjs",
    "Go": "go",
    "Rust": "rs",
    "Java": "java",
    "Kotlin": "kt kts",
    "Ruby": "rb",
    "PHP": "php",
    "C": "c h",
    "C++": "cpp cc cxx hpp",
    "C#": "cs",
    "Swift": "swift",
    "Scala": "scala",
    "Elixir": "ex exs",
    "SQL": "sql",
    "shell": "sh bash zsh",
    "HTML": "html",
    "CSS": "css scss",
    "Vue": "vue",
    "Svelte": "svelte",
    "TOML": "toml",
    "YAML": "yaml yml",
    "JSON": "json jsonl",
    "Markdown": "md",
    "Terraform": "tf",
    "Protocol Buffers": "proto",
    "Lua": "lua",
    "Dart": "dart",
    "Haskell": "hs",
    "Zig": "zig",
}
_LANGUAGES = {suffix: name for name, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
_IMPORT = re.compile(
    r"^\s{0,8}(?:from\s+([A-Za-z_]\w*)[\w.]*\s+import\b|import\s+([A-Za-z_]\w*)"
    r"|(?:import|export)\b[^'\"\n]{0,200}['\"]([@\w][^'\"\n]{0,80})['\"]|use\s+([a-z_]\w*)::)",
    re.MULTILINE,
)
_NAME = re.compile(r"`([^`\s]{3,60})`")
_LIST_LABELS = (
    "Languages and formats: ",
    "Imported in the changed code: ",
    "Programs: ",
    "Tools: ",
    "Names that came up often: ",
)
SCANNED_EDIT_CHARS = 4_000  # of an edit, where imports stand
SCANNED_TEXT_CHARS = 2_000  # of a text, searched for names in backticks
SCANNED_CHARS = 200_000  # of all the assistant's words
SHORT_CHARS = 200  # of an entry that has to give way
MAX_NAME_CHARS = 60
MAX_NAMES = 14  # in one list
MIN_MENTIONS = 3  # from this on a name is one the session turns around


def items(timeline: Timeline, prior: Prior) -> list[Item]:
    """One entry per kind of concept; lists of an earlier summary are carried on behind the new names."""
    lists = (_languages(timeline), _imports(timeline), _programs(timeline), _tools(timeline), _names(timeline))
    carried = [entry for entry in prior.section(2) if not entry.startswith(_LIST_LABELS)]
    merged = [_merged(label, names, prior) for label, names in zip(_LIST_LABELS, lists, strict=True)]
    listed = [Item(bullet(f"{label}{', '.join(names)}")) for label, names in merged if names]
    return [*(Item(bullet(entry), bullet(line(entry, SHORT_CHARS))) for entry in carried), *listed]


def _merged(label: str, names: list[str], prior: Prior) -> tuple[str, list[str]]:
    earlier = [entry.removeprefix(label) for entry in prior.section(2) if entry.startswith(label)]
    old = [name for entry in earlier for name in entry.split(", ")]
    return label, list(dict.fromkeys([*names, *old]))[: MAX_NAMES + MAX_NAMES // 2]


def _languages(timeline: Timeline) -> list[str]:
    suffixes = (PurePosixPath(path).suffix[1:].lower() for _, call, _ in timeline.calls() for path in call.paths)
    return _most(_LANGUAGES[suffix] for suffix in suffixes if suffix in _LANGUAGES)


def _imports(timeline: Timeline) -> list[str]:
    found: list[str] = []
    for _, call, _ in timeline.calls():
        if call.changes_files:
            matches = _IMPORT.finditer(call.new_text, 0, SCANNED_EDIT_CHARS)
            found.extend(next(group for group in match.groups() if group) for match in matches)
    return [line(name, MAX_NAME_CHARS) for name in _most(name for name in found if not name.startswith("__"))]


def _programs(timeline: Timeline) -> list[str]:
    return _most(f"`{line(family(step), MAX_NAME_CHARS)}`" for run in timeline.runs() for step in steps_of(run.command))


def _tools(timeline: Timeline) -> list[str]:
    return _most(line(call.name, MAX_NAME_CHARS) for _, call, _ in timeline.calls())


def _names(timeline: Timeline) -> list[str]:
    counts: Counter[str] = Counter()
    room = SCANNED_CHARS
    for _, text in reversed([*timeline.said("assistant"), *timeline.said("user")]):
        part = text[: min(SCANNED_TEXT_CHARS, max(room, 0))]
        room -= len(part)
        counts.update(set(_NAME.findall(part)))
    return [f"`{line(name, MAX_NAME_CHARS)}`" for name, count in counts.most_common(MAX_NAMES) if count >= MIN_MENTIONS]


def _most(names: Iterable[str]) -> list[str]:
    return [name for name, _ in Counter(names).most_common(MAX_NAMES)]
