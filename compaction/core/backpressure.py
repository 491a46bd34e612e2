"""How many jobs may wait, and when a producer that was refused should come again."""

from __future__ import annotations

from dataclasses import dataclass

MIN_RETRY_SECONDS = 1.0
MAX_RETRY_SECONDS = 300.0  # a guess beyond five minutes is none
UNKNOWN_RETRY_SECONDS = 30.0  # nothing is being taken: a restart of the workers takes about that long
RELIEF = 0.05  # of what waits: when a twentieth has gone, it is worth asking again


@dataclass(frozen=True, slots=True)
class Caps:
    """The most jobs that may wait, None for no limit: of one tenant, and of all together."""

    tenant: int | None = None
    everybody: int | None = None


NO_CAPS = Caps()


def retry_after_seconds(waiting: int, taken_per_second: float) -> float:
    """When there is room again for a few: at the pace at which workers take jobs."""
    if taken_per_second <= 0:
        return UNKNOWN_RETRY_SECONDS
    return min(MAX_RETRY_SECONDS, max(MIN_RETRY_SECONDS, RELIEF * waiting / taken_per_second))
