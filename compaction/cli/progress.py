"""A live line while something runs: redrawn in place on a terminal, one line per step where there is none."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from compaction.cli.output import console, safe, shortened
from compaction.client import Job

PAUSED = "provider_paused"  # the API's word for a job that waits because no worker's provider takes calls
BAR_COLUMNS = 30
MAX_NAME_CHARS = 30  # of a file or session in the line


class Line:
    """One line of progress: what is being done, how much of it, a share of 1 where it is known."""

    def __init__(self, progress: Progress | None, name: str) -> None:
        self._progress = progress
        self._name = name
        self._task: TaskID | None = progress.add_task(name, total=1.0, step="") if progress else None
        self._told = ""
        self._started = time.monotonic()

    def move(self, step: str, share: float | None, *, detail: str = "") -> None:
        """The work is at `step`; `share` of it is done, None when nobody knows. `detail` changes within a step."""
        if self._progress is not None and self._task is not None:
            total = None if share is None else 1.0
            self._progress.update(self._task, completed=share or 0.0, total=total, step=f"{step} {detail}".strip())
        elif step != self._told:
            self._told = step
            sys.stderr.write(f"{self._name}: {step}\n")

    def end(self, step: str) -> None:
        """The work is done; the line stays with its last word."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=1.0, total=1.0, step=step)
        else:
            sys.stderr.write(f"{self._name}: {step} ({time.monotonic() - self._started:.1f} s)\n")

    def show_job(self, job: Job) -> None:
        """Shows how far a job is."""
        percent = job["progress"].get("percent") if job["status"] == "running" else None
        self.move(_step(job), percent / 100 if isinstance(percent, int | float) else None)


def _step(job: Job) -> str:
    if job["progress"].get("reason") == PAUSED:
        return safe(f"waiting: the provider is paused ({job['progress'].get('cause')})")
    if job["status"] == "queued":
        return "waiting for a worker"
    if job["status"] == "retrying":
        return f"attempt {job['attempt']} failed, trying again"
    return safe(str(job["progress"].get("step") or job["status"]))


@contextmanager
def line(name: str) -> Iterator[Line]:
    """A progress line on standard error."""
    name = shortened(safe(name), MAX_NAME_CHARS)
    if not sys.stderr.isatty():
        yield Line(None, name)
        return
    columns = (
        SpinnerColumn(finished_text="✓"),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=BAR_COLUMNS),
        TextColumn("{task.fields[step]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console(error=True)) as progress:
        shown = Line(progress, name)
        try:
            yield shown
        except Exception:
            shown.move("failed", 0.0)
            raise


def sizes(done_bytes: int, total_bytes: int) -> str:
    """`1.2 of 4.0 MB`."""
    return f"{done_bytes / 1e6:.1f} of {total_bytes / 1e6:.1f} MB"
