"""How the fake counts tokens: four characters make one, a CJK, kana, Hangul or emoji character makes one by itself.

The same rule counts prompts for limits, windows, usage and count_tokens, so that a test can work a number out by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compaction.core.jsonbytes import Json

CHARS_PER_TOKEN = 4
MEDIA_TOKENS = 1_600  # what the real API takes for a large image; its base64 text is not read as text
_WIDE = re.compile(
    "[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\u2600-\u27bf\U0001f000-\U0001faff\U00020000-\U0003ffff]"
)


def tokens_in_text(text: str) -> int:
    """Tokens of one string, rounded up."""
    wide = 0 if text.isascii() else len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // CHARS_PER_TOKEN)


def tokens_in(*values: Json) -> int:
    """Tokens of every string value in `values`, however deep; base64 sources count as one medium each."""
    wide = plain = media = 0
    for text, is_medium in strings(*values):
        if is_medium:
            media += 1
            continue
        found = 0 if text.isascii() else len(_WIDE.findall(text))
        wide += found
        plain += len(text) - found
    return wide + media * MEDIA_TOKENS + -(-plain // CHARS_PER_TOKEN)


def strings(*values: Json) -> Iterator[tuple[str, bool]]:
    """Every string value, and whether it is a base64 source. Without recursion: nesting may be deep."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value, False
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            if value.get("type") == "base64" and isinstance(value.get("data"), str):
                yield value["data"], True
            else:
                waiting.extend(value.values())


def blocks_of(kinds: frozenset[str], *values: Json) -> int:
    """How many objects have one of these `type`s, at any depth."""
    found, waiting = 0, list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            found += value.get("type") in kinds
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return found
