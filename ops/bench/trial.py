"""One run of a scenario by a contender: what was asked, what it took, and the median over runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

MESSAGES, BYTES = 200, 400_000  # of a session
KINDS = 8  # different transcripts; the sessions take turns
START_SECONDS = 60.0  # a worker that does not start by then never will
PATIENCE_SECONDS = 600.0  # a run that takes so long says nothing any more
PAUSE_SECONDS = 1.0  # whatever the last run left to do is done by then


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """How many jobs at once, and how the provider answers each call."""

    name: str
    jobs: int
    latency_seconds: float
    deltas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one run took. `growth_bytes` is the peak of resident memory over what the idle process had.

    `wall_seconds` lasts from the first enqueue to the end of the last job, `work_seconds` from the first start.
    `others_cores` is what the rest of the machine used meanwhile: above 0.2 of a core, wall-clock figures suffer.
    """

    jobs: int
    ended: int
    wall_seconds: float
    work_seconds: float
    cpu_seconds: float
    growth_bytes: int
    in_flight: int
    leases_lost: int
    others_cores: float

    @property
    def jobs_per_second(self) -> float:
        """How fast jobs ended."""
        return self.ended / self.work_seconds

    @property
    def cpu_ms_per_job(self) -> float:
        """Worker CPU."""
        return 1000 * self.cpu_seconds / self.ended

    @property
    def mb_per_job(self) -> float:
        """Growth of memory for each job that was in flight at once."""
        return self.growth_bytes / 1e6 / max(1, self.in_flight)


class Contender(Protocol):
    """A queue with its worker that can play a scenario again and again."""

    @property
    def name(self) -> str:
        """How the table calls it."""
        ...

    def play(self, scenario: Scenario) -> Trial:
        """One run."""
        ...


def middle(trials: Sequence[Trial], figure: Callable[[Trial], float]) -> float:
    """The median of a figure over the runs."""
    return median(map(figure, trials))
