"""Whether the user took a standing rule back. A model's word is not enough: a page that it read may want it so."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compaction.core.cues import has_cue, is_question, unspaced, without_cues

SHARED = 0.5  # of a rule's telling words that stand in a sentence which takes it back: people say it in fewer
STEM_CHARS = 5  # of a word that are compared: delete, deleting
SHORTEST_CHARS = 4  # of a telling word; shorter ones stand in every sentence
MAX_LIFTING = 300  # sentences that may lift a rule, the newest ones: real sessions have a handful

_WORD = re.compile(r"[^\W_]+")
_QUOTES = frozenset('"“”„«»「」『』')


class Withdrawals:
    """What the user took back in `said`, whole sentences from old to new; looked through once for all rules.

    A sentence that lifts a rule asks nothing, quotes nothing, and has no if or but and no prohibition. It takes
    something back ("forget that …") and has half of the rule's telling words, or speaks of all rules; or it allows
    something and has all of those words. In doubt the rule stays.
    """

    def __init__(self, said: Sequence[str]) -> None:
        self._last = {_plain(sentence): place for place, sentence in enumerate(said)}
        lifting = [(place, sentence) for place, sentence in enumerate(said) if _is_plain_word(sentence)]
        self._lifting = [(place, sentence, _telling(sentence)) for place, sentence in lifting[-MAX_LIFTING:]]

    def lift(self, rule: str) -> bool:
        """Whether the rule was taken back after it was last said."""
        stated = self._last.get(_plain(rule), -1)
        wanted = _telling(without_cues(rule, "constraints", "fillers"))
        return any(place > stated and _lifts(sentence, words, wanted) for place, sentence, words in self._lifting)


def _is_plain_word(sentence: str) -> bool:
    if not (has_cue(sentence, "withdrawals") or has_cue(sentence, "permissions")):
        return False
    rest = without_cues(sentence, "withdrawals")  # "no longer applies" is no prohibition
    limits = has_cue(rest, "negations") or has_cue(rest, "constraints") or has_cue(rest, "exceptions")
    return not (limits or is_question(sentence) or _QUOTES & set(sentence))


def _lifts(sentence: str, words: frozenset[str], wanted: frozenset[str]) -> bool:
    shared = len(wanted & words) / len(wanted) if wanted else 0.0
    if has_cue(sentence, "withdrawals"):
        return shared >= SHARED or has_cue(sentence, "clean_slates")
    return shared == 1


def _telling(text: str) -> frozenset[str]:
    """Stems of the words that say what it is about; pairs of characters where there are no spaces between words."""
    words = _WORD.findall(text.casefold())
    pairs = {word[at : at + 2] for word in words if unspaced(word) for at in range(len(word) - 1)}
    spaced = {word for word in words if not unspaced(word)}
    long = {word for word in spaced if len(word) >= SHORTEST_CHARS} or spaced
    return frozenset(pairs | {word[:STEM_CHARS] for word in long})


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
