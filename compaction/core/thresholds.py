"""When a session is large: what of a model's window a conversation may use, where warnings and compaction begin.

All numbers are tokens. For a window of 200,000 and a model that may write 20,000 or more:

    0 ──────────────── 160,000 ──── 167,000 ──── 177,000 ─ 180,000 ─ 200,000
           ok          warning,       auto        block   effective   window
                        error
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, Literal, TypeVar

from compaction.core.jsonbytes import Json

OUTPUT_RESERVE_TOKENS = 20_000  # DESIGN §3: room for the summary; p99.99 of real summaries is 17,387
AUTO_BUFFER_TOKENS = 13_000  # DESIGN §3: automatic compaction at effective − 13,000
WARNING_BUFFER_TOKENS = 20_000  # DESIGN §3: warning and error, both at effective − 20,000
BLOCK_BUFFER_TOKENS = 3_000  # DESIGN §3: nothing more fits at effective − 3,000

_WHOLE = re.compile(r"[0-9]{1,12}")  # no window has 13 digits; int() of a megabyte of digits is an attack
_DECIMAL = re.compile(r"[0-9]{1,3}(\.[0-9]{1,12})?")

Level = Literal["ok", "warning", "error", "auto", "blocked"]
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class WarningState:
    """How full a session is; `percent_left` (0 to 100) counts down to automatic compaction (where off: to the block).

    `level` is the highest mark that was reached. Warning and error begin at the same mark (DESIGN §3), so `level` never
    says "warning" today; the flags tell both.
    """

    level: Level
    percent_left: int
    above_warning: bool
    above_error: bool
    above_auto: bool
    blocked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The marks of one session in tokens: warning ≤ error, both ≤ block ≤ window; auto ≤ block.

    Only the percentage override can take `auto` below `warning`: warnings tell about the window, not about the
    override.
    """

    window: int
    effective_window: int
    auto_compact: int
    warning: int
    error: int
    block: int

    def state(self, tokens: int, *, auto_enabled: bool = True) -> WarningState:
        """How full a session of `tokens` is; without automatic compaction the level `auto` is never reached."""
        above_auto = auto_enabled and tokens >= self.auto_compact
        goal = self.auto_compact if auto_enabled else self.block
        return WarningState(
            level=self._level(tokens, above_auto=above_auto),
            percent_left=max(0, min(100, (goal - tokens) * 100 // goal)) if goal else 0,
            above_warning=tokens >= self.warning,
            above_error=tokens >= self.error,
            above_auto=above_auto,
            blocked=tokens >= self.block,
        )

    def _level(self, tokens: int, *, above_auto: bool) -> Level:
        if tokens >= self.block:
            return "blocked"
        if above_auto:
            return "auto"
        if tokens >= self.error:
            return "error"
        return "warning" if tokens >= self.warning else "ok"


@dataclass(frozen=True, slots=True)
class Override(Generic[Number]):
    """What an override's raw value means; `warning` says why it is ignored (to be logged). Unset gives neither."""

    value: Number | None = None
    warning: str | None = None


def thresholds(
    window: int,
    max_output: int,
    *,
    window_override: int | None = None,
    percent_override: float | None = None,
) -> Thresholds:
    """The marks for a model with `window` tokens of context and `max_output` tokens of output (DESIGN §3).

    `window_override` can only shrink the window; `percent_override` (0 < p ≤ 100) puts automatic compaction at
    floor(effective × p / 100), never above its default. Values out of range are ignored, as the parsers below do.

    Small windows: the reserve and the buffers never eat more than half the window, so effective window and the
    default of every mark are at least half of it. Raises ValueError for a window below 1 or a negative output.
    """
    if window < 1 or max_output < 0:
        raise ValueError("a window has at least one token and an output limit is not negative")
    if window_override is not None and window_override > 0:
        window = min(window, window_override)
    half = (window + 1) // 2
    effective = max(half, window - min(max_output, OUTPUT_RESERVE_TOKENS))
    auto = max(half, effective - AUTO_BUFFER_TOKENS)
    warning = max(half, effective - WARNING_BUFFER_TOKENS)
    return Thresholds(
        window=window,
        effective_window=effective,
        auto_compact=min(auto, _share(effective, percent_override)),
        warning=warning,
        error=warning,
        block=max(half, effective - BLOCK_BUFFER_TOKENS),
    )


def parse_window_override(value: Json, name: str = "CLAUDE_CODE_AUTO_COMPACT_WINDOW") -> Override[int]:
    """The window override in `value`: text of an environment variable or a JSON value of a session setting."""
    if _unset(value):
        return Override()
    text = _text(value)
    if text is not None and _WHOLE.fullmatch(text) and int(text) > 0:
        return Override(int(text))
    return Override(warning=f"{name} must be a whole number of tokens above 0; it is ignored.")


def parse_percent_override(value: Json, name: str = "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE") -> Override[float]:
    """The percentage override in `value`: text of an environment variable or a JSON value of a session setting."""
    if _unset(value):
        return Override()
    text = _text(value)
    if text is not None and _DECIMAL.fullmatch(text) and _in_range(Decimal(text)):
        return Override(float(text))
    return Override(warning=f"{name} must be a number above 0 and at most 100; it is ignored.")


def _share(effective: int, percent: float | None) -> int:
    """floor(effective × percent / 100) in decimal arithmetic: 57.7 % of 180,000 is 103,860 and not one less."""
    exact = Decimal(str(percent)) if percent is not None else None
    if exact is None or not _in_range(exact):
        return effective
    return int(effective * exact / 100)


def _in_range(percent: Decimal) -> bool:
    return percent.is_finite() and 0 < percent <= 100  # noqa: PLR2004 - a percentage


def _unset(value: Json) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _text(value: Json) -> str | None:
    """`value` as the text of a number; None for what is neither text nor a number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value).strip()
