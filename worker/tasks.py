"""The one task and the signals of a worker's life."""

from __future__ import annotations

import threading
import time

from celery import Celery, signals

from worker.app import TASK
from worker.bootstrap import Process

RELEASE_SECONDS = 20.0  # facts/queue.md §3.5: so long before the end of the drain, what still runs is given back


def register(app: Celery, process: Process) -> None:
    """Adds the task to `app` and ties the process to Celery's signals."""

    @app.task(name=TASK, ignore_result=True)  # type: ignore[untyped-decorator,unused-ignore]  # celery ships no types
    def run(job_id: str) -> None:
        process.bridge.run(process.runner.run(job_id))

    def on_ready(**_: object) -> None:
        process.ready()

    def on_shutting_down(**_: object) -> None:
        process.heart.draining = True
        threading.Thread(target=_release_late, args=(process,), daemon=True, name="compactd-drain").start()

    signals.worker_ready.connect(on_ready, weak=False)
    signals.worker_shutting_down.connect(on_shutting_down, weak=False)


def _release_late(process: Process) -> None:
    """Lets running jobs finish for most of the drain time, then gives the rest back to the queue."""
    time.sleep(max(0.0, process.settings.drain_seconds - RELEASE_SECONDS))
    for held in process.heart.held():
        held.stop("drain")
