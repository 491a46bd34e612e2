"""The marks of a session, from hand calculation."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.core.thresholds import (
    Override,
    Thresholds,
    WarningState,
    parse_percent_override,
    parse_window_override,
    thresholds,
)

windows = st.integers(1, 2_000_000)
outputs = st.integers(0, 200_000)


@pytest.mark.parametrize(
    ("model", "effective", "auto", "warning", "block"),
    [
        ((200_000, 64_000), 180_000, 167_000, 160_000, 177_000),  # DESIGN's example: the reserve is 20,000 at most
        ((1_000_000, 128_000), 980_000, 967_000, 960_000, 977_000),  # the models of 2026
        ((200_000, 8_192), 191_808, 178_808, 171_808, 188_808),  # less output, less reserve
        ((65_536, 8_192), 57_344, 44_344, 37_344, 54_344),
        ((40_000, 8_000), 32_000, 20_000, 20_000, 29_000),  # 19,000 and 12,000 would be under half
        ((32_768, 8_192), 24_576, 16_384, 16_384, 21_576),
        ((8_192, 8_192), 4_096, 4_096, 4_096, 4_096),  # the output could eat the whole window
        ((8_193, 8_192), 4_097, 4_097, 4_097, 4_097),  # half of an odd window is rounded up
        ((1, 0), 1, 1, 1, 1),
    ],
)
def test_the_marks_of_a_window(model: tuple[int, int], effective: int, auto: int, warning: int, block: int) -> None:
    assert thresholds(*model) == Thresholds(
        window=model[0], effective_window=effective, auto_compact=auto, warning=warning, error=warning, block=block
    )


@pytest.mark.parametrize(
    ("override", "window"), [(100_000, 100_000), (200_000, 200_000), (500_000, 200_000), (0, 200_000), (-5, 200_000)]
)
def test_a_window_override_can_only_shrink(override: int, window: int) -> None:
    assert thresholds(200_000, 64_000, window_override=override) == thresholds(window, 64_000)


@pytest.mark.parametrize(
    ("percent", "auto"),
    [
        (50, 90_000),
        (92, 165_600),
        (92.8, 167_000),  # 167,040 is above the default
        (100, 167_000),
        (57.7, 103_860),  # exact, not 103,859 by a double's rounding
        (0.001, 1),  # floor of 1.8
        (0, 167_000),
        (-3, 167_000),
        (100.1, 167_000),
        (float("nan"), 167_000),
        (float("inf"), 167_000),
        (None, 167_000),
    ],
)
def test_a_percentage_moves_automatic_compaction_alone(percent: float | None, auto: int) -> None:
    plain = thresholds(200_000, 64_000)
    moved = thresholds(200_000, 64_000, percent_override=percent)
    assert moved.auto_compact == auto
    assert (moved.warning, moved.error, moved.block) == (plain.warning, plain.error, plain.block)


def test_a_percentage_may_go_below_half_the_window_because_somebody_asked_for_it() -> None:
    assert thresholds(32_768, 8_192, percent_override=10).auto_compact == 2_457


@pytest.mark.parametrize(("window", "max_output"), [(0, 1), (-1, 1), (1, -1)])
def test_impossible_models_are_refused(window: int, max_output: int) -> None:
    with pytest.raises(ValueError, match="at least one token"):
        thresholds(window, max_output)


@settings(deadline=None)  # shared machines stall
@given(windows, outputs, st.floats(0, 200), st.integers(-10, 2_000_000))
def test_no_override_raises_a_threshold(window: int, output: int, percent: float, override: int) -> None:
    plain = thresholds(window, output)
    moved = thresholds(window, output, percent_override=percent, window_override=override)
    assert moved.auto_compact <= plain.auto_compact
    assert moved.window <= window


@settings(deadline=None)  # shared machines stall
@given(windows, windows, outputs)
def test_marks_grow_with_the_window(one: int, other: int, output: int) -> None:
    small, large = thresholds(min(one, other), output), thresholds(max(one, other), output)
    assert small.effective_window <= large.effective_window
    assert small.auto_compact <= large.auto_compact
    assert small.warning <= large.warning
    assert small.block <= large.block


@settings(deadline=None)  # shared machines stall
@given(windows, outputs)
def test_marks_stand_in_order_and_never_under_half_the_window(window: int, output: int) -> None:
    marks = thresholds(window, output)
    ladder = [window / 2, marks.warning, marks.error, marks.auto_compact, marks.block, marks.effective_window, window]
    assert ladder == sorted(ladder)


@pytest.mark.parametrize(
    ("tokens", "level", "percent_left"),
    [
        (0, "ok", 100),
        (83_500, "ok", 50),
        (159_999, "ok", 4),
        (160_000, "error", 4),
        (166_999, "error", 0),
        (167_000, "auto", 0),
        (176_999, "auto", 0),
        (177_000, "blocked", 0),
        (900_000, "blocked", 0),
        (-1, "ok", 100),
    ],
)
def test_the_state_names_the_highest_mark_that_was_reached(tokens: int, level: str, percent_left: int) -> None:
    state = thresholds(200_000, 64_000).state(tokens)
    assert (state.level, state.percent_left) == (level, percent_left)


def test_the_flags_tell_every_mark() -> None:
    state = thresholds(200_000, 64_000).state(170_000)
    assert state == WarningState(
        level="auto", percent_left=0, above_warning=True, above_error=True, above_auto=True, blocked=False
    )


def test_without_automatic_compaction_the_percentage_counts_down_to_the_block() -> None:
    state = thresholds(200_000, 64_000).state(170_000, auto_enabled=False)
    assert (state.level, state.above_auto, state.percent_left) == ("error", False, 3)  # 7,000 of 177,000


def test_a_warning_mark_below_the_error_mark_is_a_level_of_its_own() -> None:
    marks = Thresholds(window=100, effective_window=90, auto_compact=80, warning=50, error=70, block=88)
    assert [marks.state(tokens).level for tokens in (49, 50, 69, 70, 80, 88)] == [
        "ok",
        "warning",
        "warning",
        "error",
        "auto",
        "blocked",
    ]


def test_a_threshold_of_nothing_leaves_no_percent() -> None:
    assert thresholds(10, 0, percent_override=0.001).state(0).percent_left == 0


@pytest.mark.parametrize(
    ("value", "override"),
    [("150000", 150_000), (" 150000\n", 150_000), (150_000, 150_000), ("1", 1), (None, None), ("", None), ("  ", None)],
)
def test_a_window_override_is_a_whole_number(value: object, override: int | None) -> None:
    assert parse_window_override(value) == Override(override)


@pytest.mark.parametrize(
    "value",
    ["0", "-1", "150k", "1e5", "150_000", "15.5", "٣", "9" * 5_000, 0, -1, 1.5, True, False, [], {"a": 1}],
)
def test_a_wrong_window_override_is_ignored_with_a_warning(value: object) -> None:
    assert parse_window_override(value, "context_window") == Override(
        None, "context_window must be a whole number of tokens above 0; it is ignored."
    )


@pytest.mark.parametrize(
    ("value", "override"),
    [("83.5", 83.5), (" 100 ", 100.0), ("0.5", 0.5), (50, 50.0), (12.25, 12.25), (None, None), ("", None)],
)
def test_a_percentage_override_is_a_number_up_to_a_hundred(value: object, override: float | None) -> None:
    assert parse_percent_override(value) == Override(override)


@pytest.mark.parametrize(
    "value", ["0", "-5", "100.01", "85%", "nan", "inf", "1e1", "x", ".", "1.", True, float("nan"), [], "9" * 5_000]
)
def test_a_wrong_percentage_override_is_ignored_with_a_warning(value: object) -> None:
    assert parse_percent_override(value) == Override(
        None, "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE must be a number above 0 and at most 100; it is ignored."
    )
