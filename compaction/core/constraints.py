"""Standing constraints of the user: found in a summary, checked against the user's own words, carried on word for word.

A model that summarises again and again rewords what it keeps. So the lines that the prompt asks for ("Constraint:",
"Withdrawn:") are read out of each summary and pinned: the list is stated again in every later prompt and summary
message. The model is not believed, for what it read may have told it what to write: it may name what the user said in
whole sentences, as long as there is room, and take back what the user took back (`core.withdrawals`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from compaction.core.cues import is_question, sentences, unspaced
from compaction.core.user_words import scanned, whole_sentences
from compaction.core.withdrawals import taken_back

MAX_PINNED = 50  # real sessions have a handful
MAX_PINNED_CHARS = 10_000  # of all together, some 2,500 tokens: they stand in every later prompt and summary message
MAX_CONSTRAINT_CHARS = 500  # two or three sentences; a longer quotation is a document
MAX_LINES = 200  # of one summary that are looked at, four times as many as can stay
MIN_WORDS = 2  # "Stop." is no standing rule
MIN_UNSPACED = 4  # characters where there are no spaces between words, about two words

_LINE = re.compile(
    r"[ \t]{0,40}(?:[-*•][ \t]{0,8})?[*_]{0,2}(constraint|withdrawn):[*_]{0,2}[ \t]{0,8}(.+)", re.IGNORECASE
)
_QUOTES = "\"'`“”„\u2018’«»「」『』*_"
_MARKS = f"{_QUOTES} .!\u3002\uff01"


def after_summary(previous: Sequence[str], summary_text: str, texts: Sequence[str]) -> tuple[str, ...]:
    """The list after a compaction: the previous ones that the user did not take back, then new ones, oldest first.

    `texts` are what the user wrote in the messages that the summary replaces. A new constraint consists of whole
    sentences in them, has two words or more, and asks nothing. New ones take the room that the previous ones leave.
    """
    lines = _labelled(summary_text)
    if not lines:
        return tuple(previous)
    kept = {_key(text): text for text in previous}
    texts = scanned(texts)
    said = {_key(sentence) for text in texts for sentence in whole_sentences(text)}
    for label, words in lines:
        key = _key(words)
        if label == "withdrawn":
            if key in kept and taken_back(kept[key], texts):
                del kept[key]
        elif key not in kept and _is_rule(words, said) and _fits(words, kept.values()):
            kept[key] = _plain(words)
    return tuple(kept.values())


def _is_rule(words: str, said: Collection[str]) -> bool:
    """Whether the user said it so: as one sentence, or as several of them."""
    if is_question(words) or (len(words.split()) < MIN_WORDS and unspaced(words) < MIN_UNSPACED):
        return False
    return _key(words) in said or all(_key(part) in said for part in sentences(words) or [words])


def _fits(words: str, kept: Collection[str]) -> bool:
    return len(kept) < MAX_PINNED and sum(map(len, kept)) + len(words) <= MAX_PINNED_CHARS


def _labelled(summary_text: str) -> list[tuple[str, str]]:
    found = (_LINE.fullmatch(line.rstrip()) for line in summary_text.splitlines())
    lines = ((match[1].lower(), match[2].strip(f" \t{_QUOTES}")) for match in found if match)
    return [(label, words) for label, words in lines if len(words) <= MAX_CONSTRAINT_CHARS][:MAX_LINES]


def _plain(text: str) -> str:
    return " ".join(text.split())


def _key(text: str) -> str:
    return _plain(text).strip(_MARKS).casefold()
