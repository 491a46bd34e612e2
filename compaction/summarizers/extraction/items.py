"""Entries of a section and the rule for who stays when there is no room for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEFT_OUT = "- […]"  # where there is not even room for the count
NOTE_CHARS = 60  # room for the line that tells how many entries were left out
MARK_CHARS = 50  # room for the mark of a cut entry
MIN_CUT_CHARS = 120  # with less room a cut entry would be little more than its mark


@dataclass(frozen=True, slots=True)
class Item:
    """One list entry, ready to print. `short` stands for it when the whole has no room; the heavier stays longer."""

    text: str
    short: str | None = None
    weight: int = 0


@dataclass(frozen=True, slots=True)
class Fitted:
    """What of a section is printed, how many characters that takes, and whether anything had to give way."""

    lines: tuple[str, ...]
    used_chars: int
    complete: bool


def needed_chars(items: Sequence[Item]) -> int:
    """The room that all items would take, one newline each."""
    return sum(len(item.text) + 1 for item in items)


def fit(items: Sequence[Item], limit_chars: int) -> Fitted:
    """The items that have room, in their order: the heaviest first, among equals the latest (the newest wins).

    The first one that has no room is cut to what is left, if that is enough to say something.
    """
    needed = needed_chars(items)
    if needed <= limit_chars:
        return Fitted(tuple(item.text for item in items), needed, complete=True)
    room = limit_chars - NOTE_CHARS
    chosen: dict[int, str] = {}
    for index in sorted(range(len(items)), key=lambda place: (items[place].weight, place), reverse=True):
        text = _that_fits(items[index], room)
        if text:
            chosen[index] = text
            room -= len(text) + 1
    lines = [chosen[index] for index in sorted(chosen)]
    left_out = len(items) - len(lines)
    if left_out:
        lines.insert(0, f"- [{left_out:,} older or lesser entries left out]" if limit_chars >= NOTE_CHARS else LEFT_OUT)
    return Fitted(tuple(lines), sum(len(text) + 1 for text in lines), complete=False)


def _that_fits(item: Item, room: int) -> str:
    for text in (item.text, item.short):
        if text is not None and len(text) + 1 <= room:
            return text
    if room < MIN_CUT_CHARS:
        return ""
    text = item.short or item.text
    kept = text[: room - MARK_CHARS].rstrip()
    return f"{kept} [… {len(item.text) - len(kept):,} characters left out …]"
