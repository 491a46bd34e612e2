"""A session's limits: who says them, and which wrong words about them are ignored."""

from __future__ import annotations

from compaction import limits
from compaction.core.jsonbytes import Json
from compaction.settings import Settings, settings_from
from compaction.summarizers.models import ModelLimits

API = ModelLimits(500_000, 90_000, source="api")
KEPT = ("context_window", "max_output_tokens", "auto_compact_window", "autocompact_percent")


def operator(window: str = "", percent: str = "") -> Settings:
    """The operator's settings with these overrides."""
    return settings_from(
        {
            "COMPACTD_DATABASE_URL": "postgresql+psycopg://x",
            "COMPACTD_REDIS_URL": "redis://x",
            "CLAUDE_CODE_AUTO_COMPACT_WINDOW": window,
            "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": percent,
        }
    )


def test_the_session_wins_over_the_models_api_and_that_over_the_table() -> None:
    assert limits.session_limits("claude-haiku-4-5", {}).context_window_tokens == 200_000
    assert limits.session_limits("claude-haiku-4-5", {}, API).context_window_tokens == 500_000
    set_by_hand = limits.session_limits("claude-haiku-4-5", {"context_window": 65_536}, API)
    assert (set_by_hand.context_window_tokens, set_by_hand.max_output_tokens) == (65_536, 90_000)


def test_the_smaller_override_wins_whoever_wrote_it() -> None:
    """180,000 − 20,000 are effective; 80 % of that are 128,000."""
    model = limits.session_limits("claude-haiku-4-5", {})
    marks = limits.marks(model, {"auto_compact_window": 190_000, "autocompact_percent": 90}, operator("180000", "80"))
    assert (marks.window, marks.auto_compact) == (180_000, 128_000)


def test_garbage_changes_no_mark_and_is_told_without_its_value() -> None:
    model = limits.session_limits("claude-haiku-4-5", {})
    session: dict[str, Json] = dict.fromkeys(KEPT, "s3cret")
    settings = operator("s3cret", "101")
    assert limits.session_limits("claude-haiku-4-5", session) == model
    assert limits.marks(model, session, settings) == limits.marks(model, {}, operator())
    told = limits.ignored_in_session(session)
    assert [line.split()[0] for line in told] == list(KEPT)
    assert [line.split()[0] for line in limits.ignored_in_settings(settings)] == [
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
        "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
    ]
    assert "s3cret" not in " ".join(told + limits.ignored_in_settings(settings))


def test_what_is_right_or_not_set_is_not_complained_about() -> None:
    right: dict[str, Json] = {"context_window": 100_000, "auto_compact_window": "90000", "autocompact_percent": 80.5}
    assert limits.ignored_in_session(right) == limits.ignored_in_session({}) == []
    assert limits.ignored_in_settings(operator("190000", "80")) == limits.ignored_in_settings(operator()) == []


def test_a_window_that_no_model_has_is_ignored() -> None:
    usual = limits.session_limits("claude-haiku-4-5", {})
    assert limits.session_limits("claude-haiku-4-5", {"context_window": 10**400, "max_output_tokens": 10**400}) == usual
