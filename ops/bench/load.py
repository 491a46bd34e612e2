"""What one process used over a span of time, and what the rest of the machine did meanwhile."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Self

from ops.bench.meter import Meter, machine_cpu_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Over the span: CPU of the process, its peak of memory over `idle_bytes`, CPU of everybody who is not ours."""

    cpu_seconds: float
    growth_bytes: int
    others_cores: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A span that has begun. `idle_bytes` is what the worker had before its first work; `ours` are our children too."""

    worker: Meter
    ours: Meter
    idle_bytes: int
    worker_seconds: float
    ours_seconds: float
    machine_seconds: float
    started: float

    @classmethod
    def begin(cls, worker_pid: int, idle_bytes: int) -> Self:
        """Starts to count."""
        worker, ours = Meter(worker_pid), Meter(os.getpid())
        worker.forget_peak()
        return cls(
            worker=worker,
            ours=ours,
            idle_bytes=idle_bytes,
            worker_seconds=worker.cpu_seconds(),
            ours_seconds=ours.cpu_seconds(),
            machine_seconds=machine_cpu_seconds(),
            started=time.monotonic(),
        )

    def end(self) -> Used:
        """The span is over."""
        worker = self.worker.cpu_seconds() - self.worker_seconds
        ours = self.ours.cpu_seconds() - self.ours_seconds
        machine = machine_cpu_seconds() - self.machine_seconds
        seconds = time.monotonic() - self.started
        return Used(
            cpu_seconds=worker,
            growth_bytes=max(0, self.worker.peak_bytes() - self.idle_bytes),
            others_cores=max(0.0, machine - ours) / seconds,
        )
