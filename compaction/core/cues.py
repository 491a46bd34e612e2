"""Sentences and the cues in them, from the word lists in texts/cues.toml."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal

CueKind = Literal[
    "constraints",
    "changes",
    "decisions",
    "promises",
    "withdrawals",
    "permissions",
    "negations",
    "exceptions",
    "clean_slates",
    "fillers",
]

_BREAK = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!z\.B\.)(?<!vs\.)\s+|(?<=[\u3002\uff01\uff1f])|\n+")
_LIST_MARK = re.compile(r"^(?:[-*•>]|\d{1,3}[.)]|#{1,6})\s+|^\[[ x]\]\s+")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_POLITE = ("can you", "could you", "would you", "will you", "please")  # orders, though they end like questions
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


def without_cues(sentence: str, *kinds: CueKind) -> str:
    """The sentence in lower case, a space in place of each cue of these kinds."""
    rest = sentence.lower().replace("’", "'")
    for kind in kinds:
        rest = _pattern(kind).sub(" ", rest)
    return rest


def is_question(sentence: str) -> bool:
    """Whether a sentence asks something and is no polite order."""
    lowered = sentence.lower()
    return lowered.rstrip("\"') ").endswith(("?", "\uff1f")) and not lowered.startswith(_POLITE)


def unspaced(text: str) -> int:
    """How many characters are of scripts that put no spaces between words."""
    return len(_UNSPACED.findall(text))


def is_listed(line: str) -> bool:
    """Whether a line is an item of a list."""
    return _LIST_MARK.match(line.strip()) is not None


def sentences(text: str) -> list[str]:
    """The sentences of prose: fenced blocks and over-long lines are left out, list marks taken off."""
    found = (sentence for paragraph in _prose(text) for sentence in split(paragraph))
    return [sentence for sentence in found if len(sentence) <= MAX_SENTENCE_CHARS]


def split(paragraph: str) -> list[str]:
    """The sentences of one paragraph, however long, without the mark of a list."""
    pieces = _BREAK.split(_LIST_MARK.sub("", paragraph.strip()))
    found = (_LIST_MARK.sub("", piece.strip()).strip() for piece in pieces)
    return [sentence for sentence in found if sentence]


def is_fence(line: str) -> bool:
    """Whether a line begins or ends a block of code."""
    bare = line.strip()
    return bare.startswith(_FENCES) or (bare.endswith('"""') and bare.count('"""') == 1)


def _prose(text: str) -> list[str]:
    lines: list[str] = []
    fenced = False
    for row in text.split("\n"):
        if is_fence(row):
            fenced = not fenced
        elif not fenced and lines and _continues(lines[-1], row):
            lines[-1] = f"{lines[-1].rstrip()} {row.strip()}"
        elif not fenced:
            lines.append(row)
    return lines


def _continues(above: str, row: str) -> bool:
    """Whether `row` goes on with the sentence of a hard-wrapped line."""
    start = row.lstrip()[:1]
    return len(above) >= WRAPPED_LINE_CHARS and start.islower() and above.rstrip()[-1:] not in ".!?:;"
