"""Whether the user took a standing rule back. A model's word is not enough: a page that it read may want it so."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compaction.core.cues import has_cue, unspaced
from compaction.core.user_words import whole_sentences

SHARED = 0.5  # of a rule's telling words that stand in a sentence which is about it: "Never delete the old backups."
STEM_CHARS = 5  # of a word that are compared: delete, deleting
SHORTEST_CHARS = 4  # of a telling word; shorter ones stand in every sentence

_WORD = re.compile(r"[^\W_]+")
_EMPTY = frozenset(
    (
        *(
            "never",
            "always",
            "must",
            "should",
            "shall",
            "please",
            "only",
            "also",
            "again",
            "keep",
            "make",
            "sure",
            "will",
        ),
        *(
            "with",
            "without",
            "from",
            "into",
            "this",
            "that",
            "these",
            "those",
            "what",
            "when",
            "until",
            "before",
            "after",
        ),
        *("your", "have", "been", "would", "could", "anything", "nothing", "unless", "every"),
    )
)


def taken_back(rule: str, said: Sequence[str]) -> bool:
    """Whether a sentence in `said`, the user's texts from old to new, lifts the rule, and none behind it states it.

    Such a sentence takes something back or allows something ("forget that …", "you may …"), and has half of the rule's
    telling words, or speaks of rules as such ("forget the rules").
    """
    own = _plain(rule)
    for text in reversed(said):
        for sentence in reversed(list(whole_sentences(text))):
            if _plain(sentence) == own:
                return False
            if _lifts(sentence, rule):
                return True
    return False


def _lifts(sentence: str, rule: str) -> bool:
    takes_back = has_cue(sentence, "withdrawals")
    if takes_back and has_cue(sentence, "rules"):
        return True
    return (takes_back or has_cue(sentence, "permissions")) and _is_about(sentence, rule)


def _is_about(sentence: str, rule: str) -> bool:
    wanted = _telling(rule)
    return bool(wanted) and len(wanted & _telling(sentence)) >= SHARED * len(wanted)


def _telling(text: str) -> frozenset[str]:
    """Stems of the words that say what it is about; pairs of characters where there are no spaces between words."""
    words = _WORD.findall(text.casefold())
    pairs = {word[at : at + 2] for word in words if unspaced(word) for at in range(len(word) - 1)}
    spaced = {word for word in words if not unspaced(word) and word not in _EMPTY}
    long = {word for word in spaced if len(word) >= SHORTEST_CHARS} or spaced
    return frozenset(pairs | {word[:STEM_CHARS] for word in long})


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
