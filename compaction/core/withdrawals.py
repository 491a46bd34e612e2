"""Whether the user took a standing rule back. A model's word is not enough: a page that it read may want it so."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compaction.core.cues import has_cue, is_question, unspaced, without_cues
from compaction.core.user_words import whole_sentences

SHARED = 0.5  # of a rule's telling words that stand in a sentence which takes it back: people say it in fewer
STEM_CHARS = 5  # of a word that are compared: delete, deleting
SHORTEST_CHARS = 4  # of a telling word; shorter ones stand in every sentence

_WORD = re.compile(r"[^\W_]+")


def taken_back(rule: str, said: Sequence[str]) -> bool:
    """Whether a sentence in `said`, the user's texts from old to new, lifts the rule, and none behind it states it.

    Such a sentence asks nothing. It takes something back ("forget that …") and has half of the rule's telling words, or
    speaks of rules as such; or it allows something without an if or but, and has all of those words. In doubt the rule
    stays.
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
    if is_question(sentence):
        return False
    if has_cue(sentence, "withdrawals"):
        return has_cue(sentence, "rules") or _shared(sentence, rule) >= SHARED
    allows = has_cue(sentence, "permissions") and not (
        has_cue(sentence, "negations") or has_cue(sentence, "exceptions")
    )
    return allows and _shared(sentence, rule) == 1


def _shared(sentence: str, rule: str) -> float:
    """How many of the rule's telling words stand in the sentence, from 0 to 1."""
    wanted = _telling(without_cues(rule, "constraints", "fillers"))
    return len(wanted & _telling(sentence)) / len(wanted) if wanted else 0.0


def _telling(text: str) -> frozenset[str]:
    """Stems of the words that say what it is about; pairs of characters where there are no spaces between words."""
    words = _WORD.findall(text.casefold())
    pairs = {word[at : at + 2] for word in words if unspaced(word) for at in range(len(word) - 1)}
    spaced = {word for word in words if not unspaced(word)}
    long = {word for word in spaced if len(word) >= SHORTEST_CHARS} or spaced
    return frozenset(pairs | {word[:STEM_CHARS] for word in long})


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
