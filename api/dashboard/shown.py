"""How values are shown: short, the same on every page, and with nothing in them that a browser could take amiss."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime
from decimal import Decimal

from compaction.core.jsonbytes import Json

KEPT = {"\n", "\t"}
# Format characters turn text around or hide in it (bidi overrides, zero width); a transcript may be made of them.
SHOWN_AS_MARK = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
JOINERS = {"\u200d", "\u200c"}  # of emoji and of several scripts
MINUTE, HOUR, DAY = 60, 3600, 86_400
THOUSAND = 1_000
CENT = Decimal("0.01")


def plainly(text: object) -> str:
    """Text of others without characters that steer: they are shown as a mark."""
    return "".join(
        character
        if character in KEPT or character in JOINERS or unicodedata.category(character) not in SHOWN_AS_MARK
        else "\N{REPLACEMENT CHARACTER}"
        for character in str(text)
    )


def number(value: float | None) -> str:
    """1234567 → 1,234,567."""
    return "–" if value is None else f"{value:,.0f}"


def short(value: float | None) -> str:
    """170896 → 170.9k."""
    if value is None:
        return "–"
    for bound, unit in ((THOUSAND**3, "G"), (THOUSAND**2, "M"), (THOUSAND, "k")):
        if abs(value) >= bound:
            return f"{value / bound:.1f}{unit}"
    return f"{value:.0f}"


def span(seconds: float | None) -> str:
    """A duration: 0.4 s, 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    if seconds is None:
        return "–"
    seconds = max(0.0, seconds)
    if seconds < 10:  # noqa: PLR2004 - under ten seconds the tenths are of interest
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE} s"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"


def moment(value: datetime | None) -> str:
    """A time in UTC to the second."""
    return "–" if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def clock(value: datetime) -> str:
    """The time of day to the millisecond, in UTC: what lies close together is told apart."""
    return value.astimezone(UTC).strftime("%H:%M:%S.%f")[:-3]


def ago(value: datetime | None) -> str:
    """How long ago, or in how long."""
    if value is None:
        return "–"
    seconds = (datetime.now(UTC) - value).total_seconds()
    return f"{_rough(seconds)} ago" if seconds >= 0 else f"in {_rough(-seconds)}"


def _rough(seconds: float) -> str:
    for size, unit in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def money(value: Decimal | float | None) -> str:
    """US dollars: cents, and more digits for what is less than one."""
    if value is None:
        return "unknown"
    amount = Decimal(str(value))
    return f"${amount:,.2f}" if amount >= CENT or not amount else f"${amount:.4f}"


def percent(part: float, whole: float) -> str:
    """A share as a whole number of percent; – of nothing."""
    return f"{100 * part / whole:.0f} %" if whole else "–"


def words(value: Json) -> str:
    """JSON in one line, as facts beside an event show it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def label(name: str) -> str:
    """prompt_too_long → prompt too long."""
    return name.replace("_", " ")
