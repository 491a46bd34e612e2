"""Standing constraints of the user: found in a summary, checked against the user's own words, carried on word for word.

A model that summarises again and again rewords what it keeps. So the lines that the prompt asks for ("Constraint:",
"Withdrawn:") are read out of each summary and pinned: the list is stated again in every later prompt and summary
message. The model is not believed, for what it read may have told it what to write: it may name what the user said in
whole sentences, as long as there is room, and take back what the user took back (`core.withdrawals`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from compaction.core.cues import has_cue, is_question, split, unspaced
from compaction.core.user_words import scanned, whole_sentences
from compaction.core.withdrawals import Withdrawals

MAX_PINNED = 50  # real sessions have a handful
MAX_PINNED_CHARS = 10_000  # of all together, some 2,500 tokens: they stand in every later prompt and summary message
MAX_CONSTRAINT_CHARS = 500  # two or three sentences; a longer quotation is a document
MAX_NAMED = 10  # of those that only a summary calls rules; they go first when there are too many
MAX_SENTENCES = 5_000  # of the user that are looked at, the newest ones: 0.1 s
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

    `texts` are what the user wrote in the messages that the summary replaces. A new constraint is a whole sentence in
    them, or several, has two words or more, and asks nothing. New ones take the room that the previous ones leave, and
    of those without a cue, which only a summary calls rules, there are MAX_NAMED at most.
    """
    lines = _labelled(summary_text)
    if not lines:
        return tuple(previous)
    kept = {_key(text): text for text in previous}
    sentences = [sentence for text in scanned(texts) for sentence in whole_sentences(text)][-MAX_SENTENCES:]
    said, withdrawals = {_key(sentence) for sentence in sentences}, Withdrawals(sentences)
    for (label, key), words in lines.items():
        if label == "withdrawn":
            if key in kept and withdrawals.lift(kept[key]):
                del kept[key]
        elif key not in kept and _is_said(words, said) and _fits(words, kept.values()):
            kept[key] = _plain(words)
    return tuple(kept.values())


def is_constraint(sentence: str) -> bool:
    """Whether a sentence lays down a rule by its own words; a question does not, unless it is a polite order."""
    return not is_question(sentence) and has_cue(sentence, "constraints")


def _is_said(words: str, said: Collection[str]) -> bool:
    """Whether the user said it so: as one sentence, or as several of them."""
    if is_question(words) or (len(words.split()) < MIN_WORDS and unspaced(words) < MIN_UNSPACED):
        return False
    return _key(words) in said or all(_key(part) in said for part in split(words))


def _fits(words: str, kept: Collection[str]) -> bool:
    if not is_constraint(words) and sum(not is_constraint(text) for text in kept) >= MAX_NAMED:
        return False
    return len(kept) < MAX_PINNED and sum(map(len, kept)) + len(words) <= MAX_PINNED_CHARS


def _labelled(summary_text: str) -> dict[tuple[str, str], str]:
    """The words of each line with a label, by label and key."""
    found = (_LINE.fullmatch(line.rstrip()) for line in summary_text.splitlines())
    lines = [(match[1].lower(), match[2].strip(f" \t{_QUOTES}")) for match in found if match]
    short = [(label, words) for label, words in lines if len(words) <= MAX_CONSTRAINT_CHARS]
    return {(label, _key(words)): words for label, words in short[:MAX_LINES]}


def _plain(text: str) -> str:
    return " ".join(text.split())


def _key(text: str) -> str:
    return _plain(text).strip(_MARKS).casefold()
