"""A session as its document: how full it is against the marks of its window, and its circuit breaker."""

from __future__ import annotations

from collections.abc import Mapping

from api.bodies import think
from api.live import live_messages, size_bytes
from api.schemas.breakers import Breaker
from api.schemas.sessions import Fullness, Marks, Session, StoredSession
from compaction.core import jsonbytes, tokens
from compaction.core.breaker import BreakerState
from compaction.core.thresholds import Thresholds
from compaction.limits import marks, session_limits
from compaction.settings import Settings
from compaction.store.sessions import LiveView, SessionRow


async def session_view(
    row: SessionRow, live: LiveView, parameters: Mapping[str, bytes], breaker: BreakerState, settings: Settings
) -> Session:
    """The session as clients see it."""
    window = marks(session_limits(row.model, row.settings), row.settings, settings)
    size = size_bytes(live) + sum(map(len, parameters.values()))
    fullness = await think(size, _fullness, row, live, parameters, window, settings)
    return Session(
        **dict(StoredSession.of(row)),
        state=fullness,
        breaker=Breaker.of(row.name, breaker, settings.breaker_cooldown_seconds),
    )


def _fullness(
    row: SessionRow, live: LiveView, parameters: Mapping[str, bytes], window: Thresholds, settings: Settings
) -> Fullness:
    values = {name: jsonbytes.decode(raw) for name, raw in parameters.items()}
    counted = tokens.session_tokens(live_messages(live), system=values.get("system"), tools=values.get("tools"))
    auto_enabled = not settings.disable_auto_compact and row.settings.get("auto_compact_enabled") is not False
    state = window.state(counted.tokens, auto_enabled=auto_enabled)
    return Fullness(
        tokens=counted.tokens,
        level=state.level,
        percent_left=state.percent_left,
        marks=Marks(
            window=window.window,
            effective_window=window.effective_window,
            warning=window.warning,
            error=window.error,
            auto_compact=window.auto_compact,
            block=window.block,
        ),
    )
