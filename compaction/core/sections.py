"""The nine sections of a summary: their titles, and where they begin in a text that a model wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass

TITLES = (
    "Primary Request and Intent",
    "Key Technical Concepts",
    "Files and Code Sections",
    "Errors and Fixes",
    "Problem Solving",
    "All User Messages",
    "Pending Tasks",
    "Current Work",
    "Optional Next Step",
)
UP_TO_TITLES = (*TITLES[:7], "Work Completed", "Context for Continuing Work")
LAST = 9

_NUMBERS = {title.casefold(): number for titles in (TITLES, UP_TO_TITLES) for number, title in enumerate(titles, 1)}
# A number, a markdown heading or bold type marks a heading, each of them optional; letter case varies in real summaries
# (transcripts/README.md). Runs of spaces are bounded: a hostile line of a million spaces costs nothing.
_HEADING = re.compile(
    r"^[ \t>]{0,40}(?P<mark>(?:\#{1,6}[ \t]{1,8})?[*_]{0,3}(?:[0-9]{1,2}[.):]?[ \t]{0,8})?[*_]{0,3})"
    rf"(?P<title>{'|'.join(_NUMBERS)})s?\b(?P<rest>[^\n]*)$".replace(" and ", " (?:and|&) ").replace(
        "errors", "errors?"
    ),
    re.ASCII | re.IGNORECASE | re.MULTILINE,  # ASCII: else a dotless i would pass for an i
)


@dataclass(frozen=True, slots=True)
class Heading:
    """One section's heading: its number from 1 to 9, where its line starts and where its title ends."""

    number: int
    start: int
    end: int


def headings(text: str) -> tuple[Heading, ...]:
    """The section headings in `text`, in order. A title without number or markup counts only alone on its line."""
    found = []
    for match in _HEADING.finditer(text):
        rest = match["rest"].strip(" \t*_:\uff1a")
        if match["mark"] or not rest:
            found.append(Heading(_number(match["title"]), match.start(), match.start("rest")))
    return tuple(found)


def without_headings(text: str) -> str:
    """What `text` says under its headings; what follows a title on the same line stays."""
    pieces = []
    end = 0
    for heading in headings(text):
        pieces.append(text[end : heading.start])
        end = heading.end
    return "".join((*pieces, text[end:]))


def _number(title: str) -> int:
    plain = title.casefold().replace("&", "and")
    return _NUMBERS.get(plain) or _NUMBERS[plain.replace("error ", "errors ")]
