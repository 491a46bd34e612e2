"""A session's limits: what its model takes, and where warnings and compaction begin."""

from __future__ import annotations

from collections.abc import Mapping

from compaction.core import thresholds
from compaction.core.jsonbytes import Json
from compaction.core.thresholds import Thresholds
from compaction.settings import Settings
from compaction.summarizers import models
from compaction.summarizers.models import ModelLimits


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

    Garbage in an override is ignored: whoever wrote it sees the marks on the session.
    """
    windows = map(thresholds.parse_window_override, (session.get("auto_compact_window"), settings.auto_compact_window))
    shares = map(thresholds.parse_percent_override, (session.get("autocompact_percent"), settings.autocompact_percent))
    return thresholds.thresholds(
        limits.context_window_tokens,
        limits.max_output_tokens,
        window_override=min((one.value for one in windows if one.value is not None), default=None),
        percent_override=min((one.value for one in shares if one.value is not None), default=None),
    )


def _count(session: Mapping[str, Json], name: str) -> int | None:
    value = session.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
