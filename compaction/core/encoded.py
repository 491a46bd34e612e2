"""Encoded data inside texts: runs of base64 or hex without a space, which cost tokens and tell a reader nothing."""

from __future__ import annotations

import re
import string

WINDOW_CHARS = 1_024  # no word, path, URL or hash in ordinary text is so long; every run of twice that is found
SHOWN_CHARS = 64  # of each end: enough to tell the format by its first bytes, and where the data ends

_ALPHABET = string.ascii_letters + string.digits + "+/=_-"
_RUN = re.compile(rf"[{re.escape(_ALPHABET)}]{{{WINDOW_CHARS},}}")


def shorten_encoded(text: str) -> str:
    """`text` with each long encoded run reduced to its two ends and a count of what is missing.

    Only every WINDOW_CHARS-th place is looked at, and the first space ends each look: ordinary text costs nothing.
    """
    if len(text) < WINDOW_CHARS:
        return text
    pieces: list[str] = []
    done = place = 0
    while place < len(text):
        run = _RUN.match(text, place)
        if run is None:
            place += WINDOW_CHARS
            continue
        start = max(done, place - WINDOW_CHARS)
        start += len(text[start:place].rstrip(_ALPHABET))
        left_out = run.end() - start - 2 * SHOWN_CHARS
        pieces += text[done : start + SHOWN_CHARS], f"[… {left_out:,} characters of encoded data …]"
        done = run.end() - SHOWN_CHARS
        place = run.end()
    return "".join((*pieces, text[done:])) if pieces else text
