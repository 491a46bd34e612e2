"""The beginning of a text that fits a budget of tokens, cut where a reader sees it."""

from __future__ import annotations

from compaction.core import tokens

MAX_CHARS_PER_TOKEN = 4  # of our estimate (tokens.PROSE_QUARTERS): no text of the budget is longer
LINE_SHARE = 2  # a cut goes back to the last line break when that keeps at least half
MARK = "[… {} characters left out …]"
MARK_TOKENS = tokens.estimate_text("\n" + MARK.format(99_999_999))


def cut(text: str, budget_tokens: int) -> str:
    """`text`, or as much of its beginning as fits `budget_tokens` with a visible mark behind it.

    Cut between code points, at the end of a line where one is near. A budget smaller than the mark leaves the mark.
    """
    if len(text) <= budget_tokens * MAX_CHARS_PER_TOKEN and tokens.estimate_text(text) <= budget_tokens:
        return text
    head = text[: _fitting(text, budget_tokens - MARK_TOKENS)]
    line = head.rfind("\n")
    if line * LINE_SHARE >= len(head):
        head = head[:line]
    gap = "\n" if head else ""
    return f"{head}{gap}{MARK.format(len(text) - len(head))}"


def _fitting(text: str, budget_tokens: int) -> int:
    """The most characters from the start that take at most `budget_tokens`."""
    low, high = 0, min(len(text), max(0, budget_tokens) * MAX_CHARS_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if tokens.estimate_text(text[:middle]) <= budget_tokens else (low, middle - 1)
    return low
