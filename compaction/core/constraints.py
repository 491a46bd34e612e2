"""Standing constraints of the user: found in a summary, checked against the user's own words, carried on word for word.

A model that summarises again and again rewords what it keeps. So the lines that the prompt asks for ("Constraint:",
"Withdrawn:") are read out of each summary and pinned: the list is stated again in every later prompt and summary
message. Only what the user literally wrote is pinned; a file or web page that poses as the user's wish is not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from compaction.core.messages import Message

MAX_PINNED = 50  # real sessions have a handful; the newest win
MAX_CONSTRAINT_CHARS = 500  # two or three sentences; a longer quotation is a document

_LINE = re.compile(
    r"[ \t]{0,40}(?:[-*•][ \t]{0,8})?[*_]{0,2}(constraint|withdrawn):[*_]{0,2}[ \t]{0,8}(.+)", re.IGNORECASE
)
_QUOTES = "\"'`“”„\u2018’«»「」『』*_"


def pinned(previous: Sequence[str], summary_text: str, texts: Sequence[str]) -> tuple[str, ...]:
    """The list after a compaction: the previous ones that were not withdrawn, then the new ones, oldest first.

    `texts` are what the user wrote in the messages that the summary replaces; a new constraint must stand literally in
    one of them (white space aside), and is kept as it stands there.
    """
    said = "\n".join(_plain(text).casefold() for text in texts)  # no key holds a line break
    kept = {_key(text): text for text in previous}
    for label, words in _labelled(summary_text):
        key = _key(words)
        if label == "withdrawn":
            kept.pop(key, None)
        elif key and key not in kept and key in said:
            kept[key] = _plain(words)
    return tuple(kept.values())[-MAX_PINNED:]


def user_texts(messages: Sequence[Message]) -> tuple[str, ...]:
    """What the user wrote: the texts of user messages that are neither injected nor a summary, without tool results."""
    own = (one for one in messages if one.role == "user" and one.in_conversation and not one.is_meta)
    return tuple(
        block["text"]
        for message in own
        if not message.is_compact_summary
        for block in message.blocks()
        if block["type"] == "text" and isinstance(block.get("text"), str)
    )


def _labelled(summary_text: str) -> list[tuple[str, str]]:
    found = (_LINE.fullmatch(line.rstrip()) for line in summary_text.splitlines())
    lines = ((match[1].lower(), match[2].strip(f" \t{_QUOTES}")) for match in found if match)
    return [(label, words) for label, words in lines if len(words) <= MAX_CONSTRAINT_CHARS]


def _plain(text: str) -> str:
    return " ".join(text.split())


def _key(text: str) -> str:
    return _plain(text).strip(_QUOTES).casefold()
