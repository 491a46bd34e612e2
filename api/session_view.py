"""A session as its document: how full it is against the marks of its window, and its circuit breaker."""

from __future__ import annotations

from collections.abc import Mapping

from api.bodies import think
from api.live import live_messages, size_bytes
from api.schemas.breakers import Breaker
from api.schemas.sessions import Fullness, Marks, Session, StoredSession
from compaction.core import jsonbytes, thresholds, tokens
from compaction.core.breaker import BreakerState
from compaction.core.jsonbytes import Json
from compaction.core.thresholds import Thresholds
from compaction.settings import Settings
from compaction.store.sessions import LiveView, SessionRow
from compaction.summarizers import models


async def session_view(
    row: SessionRow, live: LiveView, parameters: Mapping[str, bytes], breaker: BreakerState, settings: Settings
) -> Session:
    """The session as clients see it."""
    marks = _marks(row, settings)
    size = size_bytes(live) + sum(map(len, parameters.values()))
    fullness = await think(size, _fullness, row, live, parameters, marks, settings)
    return Session(
        **dict(StoredSession.of(row)),
        state=fullness,
        breaker=Breaker.of(row.name, breaker, settings.breaker_cooldown_seconds),
    )


def _fullness(
    row: SessionRow, live: LiveView, parameters: Mapping[str, bytes], marks: Thresholds, settings: Settings
) -> Fullness:
    values = {name: jsonbytes.decode(raw) for name, raw in parameters.items()}
    counted = tokens.session_tokens(live_messages(live), system=values.get("system"), tools=values.get("tools"))
    auto_enabled = not settings.disable_auto_compact and row.settings.get("auto_compact_enabled") is not False
    state = marks.state(counted.tokens, auto_enabled=auto_enabled)
    return Fullness(
        tokens=counted.tokens,
        level=state.level,
        percent_left=state.percent_left,
        marks=Marks(
            window=marks.window,
            effective_window=marks.effective_window,
            warning=marks.warning,
            error=marks.error,
            auto_compact=marks.auto_compact,
            block=marks.block,
        ),
    )


def _marks(row: SessionRow, settings: Settings) -> Thresholds:
    """The marks of the session's model, its window shrunk by the session's override or else by the operator's."""
    limits = models.limits_for(
        row.model,
        context_window_tokens=_count(row.settings, "context_window"),
        max_output_tokens=_count(row.settings, "max_output_tokens"),
    )
    window = thresholds.parse_window_override(row.settings.get("auto_compact_window", settings.auto_compact_window))
    percent = thresholds.parse_percent_override(row.settings.get("autocompact_percent", settings.autocompact_percent))
    return thresholds.thresholds(
        limits.context_window_tokens,
        limits.max_output_tokens,
        window_override=window.value,
        percent_override=percent.value,
    )


def _count(settings: Mapping[str, Json], name: str) -> int | None:
    value = settings.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
