"""Values made sendable: NUL and half characters out of every string, NaN and the infinities out of the numbers.

Copy on write: what needs no change is returned as the same object, so a clean session costs one look and no memory.
"""

from __future__ import annotations

import math
from collections import Counter

from compaction.core.jsonbytes import Json

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # Unicode's own sign for a character that could not be kept
MARK = "cache_control"


def clean_text(text: str, tally: Counter[str]) -> str:
    """`text` without NUL and lone surrogates, each replaced by U+FFFD; two halves that belong together become one."""
    if is_clean_text(text):
        return text
    tally["characters_replaced"] += 1
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return whole.replace("\0", REPLACEMENT)


def is_clean_text(text: str) -> bool:
    """Whether `clean_text` would change nothing."""
    return "\0" not in text and (text.isascii() or _is_whole(text))


def clean_value(value: Json, tally: Counter[str], *, drop_marks: bool = False) -> Json:
    """`value` with every string and key cleaned and non-finite numbers as null; `drop_marks` takes cache marks out."""
    return value if is_clean(value, drop_marks=drop_marks) else _cleaned(value, tally, drop_marks)


def is_clean(value: Json, *, drop_marks: bool = False) -> bool:
    """Whether `clean_value` would change nothing: the usual case, looked at without building anything."""
    nodes = [value]
    for node in nodes:  # grows while it is read
        kind = type(node)
        if kind is str:
            if "\0" in node or not (node.isascii() or _is_whole(node)):  # `is_clean_text` without the price of a call
                return False
        elif kind is dict:
            if drop_marks and MARK in node:
                return False
            nodes += "".join(node), *node.values()
        elif kind is list:
            nodes += node
        elif kind is float and not math.isfinite(node):
            return False
    return True


def _cleaned(value: Json, tally: Counter[str], drop_marks: bool) -> Json:  # noqa: FBT001 - one name for one idea
    """One Python frame per level of nesting: `messages.MAX_NESTING` stays far from the interpreter's limit."""
    if isinstance(value, str):
        return clean_text(value, tally)
    if isinstance(value, dict):
        members: dict[str, Json] = {}
        for key, item in value.items():
            if drop_marks and key == MARK:
                tally["cache_marks_dropped"] += 1
            else:
                members[_free(key, members, tally)] = _cleaned(item, tally, drop_marks)
        return members
    if isinstance(value, list):
        items: list[Json] = []
        for item in value:
            items.append(_cleaned(item, tally, drop_marks))  # noqa: PERF401 - a comprehension is a frame
        return items
    if isinstance(value, float) and not math.isfinite(value):
        tally["numbers_replaced"] += 1
        return None
    return value


def _free(key: str, members: dict[str, Json], tally: Counter[str]) -> str:
    """The cleaned key; longer where another key differed from it in a bad character only."""
    key = clean_text(key, tally)
    while key in members:
        key += REPLACEMENT
    return key


def _is_whole(text: str) -> bool:
    """Whether `text` holds no half character. UTF-16 refuses them too, and its encoder is several times faster."""
    try:
        text.encode("utf-16-le")
    except UnicodeEncodeError:
        return False
    return True
