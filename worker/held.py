"""A job that this process runs: what its heart needs to know to keep it, and to stop it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from worker.recorder import AttemptRecorder

Reason = Literal["cancel", "lease", "drain"]


@dataclass(slots=True)
class Held:
    """A job that this process runs: how to stop it, and why it was stopped.

    `is_settled`: the attempt is over and its verdict is being written; nothing may interrupt that.
    """

    job_id: str
    token: int
    recorder: AttemptRecorder
    interrupt: Callable[[], object]
    reason: Reason | None = None
    is_settled: bool = False
    renewed_at: float = field(default_factory=time.monotonic)  # by our clock: the claim, then each beat

    def stop(self, reason: Reason) -> None:
        """Interrupts the attempt once; the first reason stays."""
        if self.reason is None:
            self.reason = reason
            self.interrupt()
