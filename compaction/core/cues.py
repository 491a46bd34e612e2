"""Sentences and the cues in them, from the word lists in texts/cues.toml."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

CueKind = Literal["constraints", "changes", "decisions", "promises"]

_BREAK = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!z\.B\.)(?<!vs\.)\s+|(?<=[\u3002\uff01\uff1f])|\n+")
_LIST_MARK = re.compile(r"^(?:[-*•>]|\d{1,3}[.)]|#{1,6})\s+|^\[[ x]\]\s+")
_FENCES = ("```", "~~~", '"""')
WRAPPED_LINE_CHARS = 50  # a shorter line was ended by its writer, not by the margin
MAX_SENTENCE_CHARS = 400  # longer "sentences" are pasted data


_TABLES = tomllib.loads(files("compaction.core").joinpath("texts", "cues.toml").read_text("utf-8"))


@cache
def _pattern(kind: CueKind) -> re.Pattern[str]:
    languages = _TABLES[kind].values()
    return re.compile("|".join(f"(?:{expression})" for expressions in languages for expression in expressions))


def has_cue(sentence: str, kind: CueKind) -> bool:
    """Whether a sentence shows a cue of that kind."""
    return _pattern(kind).search(sentence.lower().replace("’", "'")) is not None


def sentences(text: str) -> list[str]:
    """The sentences of prose: fenced blocks and over-long lines are left out, list marks taken off."""
    found = []
    for paragraph in _prose(text):
        for piece in _BREAK.split(paragraph):
            sentence = _LIST_MARK.sub("", piece.strip()).strip()
            if sentence and len(sentence) <= MAX_SENTENCE_CHARS:
                found.append(sentence)
    return found


def _prose(text: str) -> list[str]:
    lines: list[str] = []
    fenced = False
    for row in text.split("\n"):
        bare = row.strip()
        if bare.startswith(_FENCES) or (bare.endswith('"""') and bare.count('"""') == 1):
            fenced = not fenced
        elif not fenced and lines and _continues(lines[-1], row):
            lines[-1] = f"{lines[-1].rstrip()} {bare}"
        elif not fenced:
            lines.append(row)
    return lines


def _continues(above: str, row: str) -> bool:
    """Whether `row` goes on with the sentence of a hard-wrapped line."""
    start = row.lstrip()[:1]
    return len(above) >= WRAPPED_LINE_CHARS and start.islower() and above.rstrip()[-1:] not in ".!?:;"
