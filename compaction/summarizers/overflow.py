"""Whether a refusal means that the prompt is too long, by how much, and what it is about when it is not.

DESIGN §3 "Prompt too long". Pure: text in, a frozen verdict out. The order of the questions is the point: numbers with
the words of an overflow decide first (a chain of proxies reports several causes, and only this one is cured by dropping
history); words that a throttle or an empty account uses as well come after those.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from compaction.core.jsonbytes import Json
from compaction.summarizers import overflow_wording as wording
from compaction.summarizers.error_text import flatten

Category = Literal["tokens", "bytes", "media", "output_cap", "rate_limit", "billing", "config", "unknown"]

OUTPUT_ROOM_TOKENS = 8_000  # DESIGN §8: with that much room for output, asking for less output beats dropping history
_BY_STATUS: dict[int, Category] = {  # what a status means when the text says nothing we know
    401: "config",
    402: "billing",
    403: "config",
    404: "config",
    413: "bytes",
    429: "rate_limit",
}
_LOOSE: tuple[tuple[Category, re.Pattern[str]], ...] = (  # in this order: "too many tokens, please wait" is a throttle
    ("rate_limit", wording.RATE),
    ("tokens", wording.PERHAPS_TOO_LONG),
    ("bytes", wording.BYTES),
    ("config", wording.CONFIG),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """A refusal, understood.

    `gap` is what is too much (input and, where the text adds it, requested output), in tokens; None without usable
    numbers. `lower_bound`: the text only says "at least". `output_first`: it proves that the input alone leaves
    OUTPUT_ROOM_TOKENS. `actual` is the input as the provider counted it (the whole where it does not split it), `limit`
    the window, or for output_cap the most output tokens that the model takes. For bytes both are bytes or characters.
    """

    category: Category
    gap: int | None = None
    lower_bound: bool = False
    output_first: bool = False
    actual: int | None = None
    limit: int | None = None


def classify(status: int | None, body: Json | str | bytes | None, text: str | None = None) -> Overflow:
    """The verdict on an HTTP status (None without one), a body (decoded, text or bytes) and an exception's text."""
    said = flatten(body, text)
    by_status = _BY_STATUS.get(status or 0, "unknown")
    return _counted(said) or _worded(said) or (_bytes(said) if by_status == "bytes" else Overflow(category=by_status))


def _counted(said: str) -> Overflow | None:
    for pattern in wording.COUNTED:
        match = pattern.search(said)
        if match:
            return _verdict(match)
    return None


def _verdict(match: re.Match[str]) -> Overflow:
    numbers = {name: _int(value) for name, value in match.groupdict().items() if value}
    limit, output, total, actual = (numbers.get(name) for name in ("limit", "output", "total", "input"))
    if actual is None and total is not None and output is not None:
        actual = total - output
    whole = total or (actual or 0) + (output or 0)
    lower_bound = wording.AT_LEAST.search(match.group()) is not None
    room = limit - actual if limit is not None and actual is not None else 0
    return Overflow(
        category="tokens",
        gap=whole - limit if limit is not None and whole > limit else None,
        lower_bound=lower_bound,
        output_first=room >= OUTPUT_ROOM_TOKENS and not lower_bound,
        actual=actual if actual is not None else total,
        limit=limit,
    )


def _worded(said: str) -> Overflow | None:
    if wording.BILLING.search(said) or (wording.QUOTA.search(said) and not wording.RATE.search(said)):
        return Overflow(category="billing")
    if wording.MEDIA.search(said):
        return Overflow(category="media")
    if wording.TOO_LONG.search(said):
        return Overflow(category="tokens")
    return _output_cap(said) or _loosely_worded(said)


def _loosely_worded(said: str) -> Overflow | None:
    for category, pattern in _LOOSE:
        if pattern.search(said):
            return _bytes(said) if category == "bytes" else Overflow(category=category)
    return None


def _bytes(said: str) -> Overflow:
    for pattern in wording.BYTES_COUNTED:
        match = pattern.search(said)
        if match:
            actual, limit = (_int(match.groupdict().get(name) or "") for name in ("input", "limit"))
            if not actual or actual > limit > 0:
                return Overflow(category="bytes", actual=actual or None, limit=limit or None)
    return Overflow(category="bytes")


def _output_cap(said: str) -> Overflow | None:
    for pattern in wording.OUTPUT_CAP:
        match = pattern.search(said)
        if match:
            groups = match.groupdict()
            limit = _int(groups["above"]) - 1 if groups.get("above") else _int(groups.get("limit") or "")
            return Overflow(category="output_cap", limit=limit or None)
    return None


def _int(digits: str) -> int:
    plain = digits.replace(",", "").replace("_", "")
    return int(plain) if plain else 0
