"""A session's memory document: whether it says anything yet, and how it is cut to a budget.

Agents keep notes on their session in a document with a heading per subject, which begins as a template.
"""

from __future__ import annotations

import re

from compaction.core import excerpt, tokens

MIN_LETTERS = 16  # beside headings and instructions, as for a summary (core/summary.py): less is no memory
_SECTION = re.compile(r"^(?=#{1,6}[ \t])", re.MULTILINE)
# Lines of a template: headings, instructions in italics, placeholders in brackets, fillers, rules.
_TEMPLATE = re.compile(
    r"#{1,6}(?:[ \t].*)?|[_*][^_*].*[_*]|(?:[-*+•][ \t]+)?[\[<(][^\])>]*[\])>]"
    r"|(?:[-*+•][ \t]+)?(?:none|n/a|tbd|todo|empty)[.:]?|[-*_=+•|: \t]*",
    re.IGNORECASE,
)


def is_empty(memory: str) -> bool:
    """Whether the document is blank or still the template that it began as."""
    lines = (line.strip() for line in _without_comments(memory).splitlines())
    said = (line for line in lines if not _TEMPLATE.fullmatch(line))
    return sum(character.isalnum() for line in said for character in line) < MIN_LETTERS


def within(memory: str, budget_tokens: int) -> str:
    """The document in at most `budget_tokens`: its longest sections lose their ends, each with a mark in its place.

    All sections are cut down to one common size, so that short ones stay whole.
    """
    text = memory.strip()
    if tokens.estimate_text(text) <= budget_tokens:
        return text
    sections = [section for section in _SECTION.split(text) if section.strip()]
    sizes = [tokens.estimate_text(section) for section in sections]
    level = _level(sizes, budget_tokens - len(sections))  # a line break each
    cut = [
        section.rstrip() if size <= level else excerpt.cut(section.rstrip(), level)
        for section, size in zip(sections, sizes, strict=True)
    ]
    return excerpt.cut("\n".join(cut), budget_tokens)


def _without_comments(text: str) -> str:
    """The text without its HTML comments. Linear in its length, however many of them are not closed."""
    pieces, place = [], 0
    while (start := text.find("<!--", place)) >= 0 and (end := text.find("-->", start)) >= 0:
        pieces.append(text[place:start])
        place = end + len("-->")
    return "".join((*pieces, text[place:]))


def _level(sizes: list[int], budget: int) -> int:
    """The highest common size with which all sections come within the budget."""
    low, high = 0, max(sizes)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(size, middle) for size in sizes) <= budget else (low, middle - 1)
    return low
