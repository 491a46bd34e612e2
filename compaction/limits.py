"""A session's limits: what its model takes, and where warnings and compaction begin."""

from __future__ import annotations

from collections.abc import Mapping

from compaction.core import thresholds
from compaction.core.jsonbytes import Json
from compaction.core.thresholds import Override, Thresholds
from compaction.settings import Settings
from compaction.summarizers import models
from compaction.summarizers.models import ModelLimits

MAX_LIMIT_TOKENS = 10_000_000  # ten times the largest window that is sold


def session_limits(model: str, session: Mapping[str, Json], known: ModelLimits | None = None) -> ModelLimits:
    """What the session's model takes and gives; the settings context_window and max_output_tokens win.

    `known` is what the provider's Models API says, where somebody asked it; it wins over our table.
    """
    return models.limits_for(
        model,
        context_window_tokens=_count(session, "context_window"),
        max_output_tokens=_count(session, "max_output_tokens"),
        known=known,
    )


def marks(limits: ModelLimits, session: Mapping[str, Json], settings: Settings) -> Thresholds:
    """The marks of the session's window, shrunk by the session's override and by the operator's: the smaller one wins.

    Garbage in an override is ignored; `ignored_in_session` and `ignored_in_settings` say so.
    """
    of_session, of_operator = _overrides_of(session), _operators(settings)
    windows = [one.value for one in (of_session[0], of_operator[0]) if one.value is not None]
    shares = [one.value for one in (of_session[1], of_operator[1]) if one.value is not None]
    return thresholds.thresholds(
        limits.context_window_tokens,
        limits.max_output_tokens,
        window_override=min(windows, default=None),
        percent_override=min(shares, default=None),
    )


def ignored_in_settings(settings: Settings) -> list[str]:
    """Which of the operator's overrides are ignored and why, for the log of a process that starts. Quotes no value."""
    return [one.warning for one in _operators(settings) if one.warning is not None]


def ignored_in_session(session: Mapping[str, Json]) -> list[str]:
    """Which of a session's settings about its window are ignored and why, for the job's timeline. Quotes no value."""
    counts = [
        f"{name} must be a whole number of tokens above 0; it is ignored."
        for name in ("context_window", "max_output_tokens")
        if session.get(name) is not None and _count(session, name) is None
    ]
    return counts + [one.warning for one in _overrides_of(session) if one.warning is not None]


def _operators(settings: Settings) -> tuple[Override[int], Override[float]]:
    window = thresholds.parse_window_override(settings.auto_compact_window)
    return window, thresholds.parse_percent_override(settings.autocompact_percent)


def _overrides_of(session: Mapping[str, Json]) -> tuple[Override[int], Override[float]]:
    names = ("auto_compact_window", "autocompact_percent")
    window = thresholds.parse_window_override(session.get(names[0]), names[0])
    return window, thresholds.parse_percent_override(session.get(names[1]), names[1])


def _count(session: Mapping[str, Json], name: str) -> int | None:
    value = session.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value <= MAX_LIMIT_TOKENS else None
