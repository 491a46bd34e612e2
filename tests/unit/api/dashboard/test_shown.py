"""How values are shown. Expected texts are written by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.dashboard import shown

MARK = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("evil\u202egnp.exe", f"evil{MARK}gnp.exe"),
        ("\x1b[31mred", f"{MARK}[31mred"),
        ("a\u200bb", f"a{MARK}b"),
        ("half \ud800", f"half {MARK}"),
        ("\N{WOMAN}\u200d\N{PERSONAL COMPUTER}", "\N{WOMAN}\u200d\N{PERSONAL COMPUTER}"),
        (7, "7"),
    ],
)
def test_text_of_others_is_shown_without_characters_that_steer(said: object, expected: str) -> None:
    assert shown.plainly(said) == expected


@given(st.text())
def test_plain_text_keeps_its_length_and_is_plain(text: str) -> None:
    once = shown.plainly(text)
    assert len(once) == len(text)
    assert shown.plainly(once) == once


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "–"),
        (-3.0, "0.0 s"),
        (0.44, "0.4 s"),
        (12.4, "12 s"),
        (59.7, "1 min 0 s"),
        (200.0, "3 min 20 s"),
        (7_500.0, "2 h 5 min"),
        (273_600.0, "3 d 4 h"),
    ],
)
def test_durations(seconds: float | None, expected: str) -> None:
    assert shown.span(seconds) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "–"), (0, "0"), (999, "999"), (170_896, "170.9k"), (2_500_000, "2.5M"), (-1_500, "-1.5k")],
)
def test_short_numbers(value: float | None, expected: str) -> None:
    assert shown.short(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "unknown"),
        (Decimal(0), "$0.00"),
        (Decimal("0.039973"), "$0.04"),
        (Decimal("0.0012"), "$0.0012"),
        (Decimal("1234.5"), "$1,234.50"),
    ],
)
def test_dollars(value: Decimal | None, expected: str) -> None:
    assert shown.money(value) == expected


def test_times_are_told_in_utc_and_as_an_age() -> None:
    east = datetime.fromisoformat("2026-12-01T02:00:00.123456+02:00")
    assert shown.moment(east) == "2026-12-01 00:00:00"
    assert shown.clock(east) == "00:00:00.123"
    now = datetime.now(UTC)
    assert shown.ago(now - timedelta(minutes=5, seconds=1)) == "5 min ago"
    assert shown.ago(now + timedelta(hours=2, minutes=1)) == "in 2 h"
    assert shown.ago(None) == shown.moment(None) == "–"


def test_shares_of_nothing_are_no_number() -> None:
    assert shown.percent(1, 0) == "–"
    assert shown.percent(2, 3) == "67 %"
