"""The one task and the signals of a worker's life."""

from __future__ import annotations

import logging

from celery import Celery, signals

from worker.app import TASK
from worker.bootstrap import Process

TALKERS = ("celery.worker.strategy", "celery.app.trace")  # two lines a task, beside our own that says what became of it


def register(app: Celery, process: Process) -> None:
    """Adds the task to `app` and ties the process to Celery's signals."""

    @app.task(name=TASK, ignore_result=True)  # type: ignore[untyped-decorator,unused-ignore]  # celery ships no types
    def run(job_id: str) -> None:
        process.bridge.run(process.runner.run(job_id))

    def on_ready(**_: object) -> None:
        process.drain.listen()
        process.ready()

    def on_shutting_down(**_: object) -> None:
        process.drain.begin()

    for name in TALKERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    signals.worker_ready.connect(on_ready, weak=False)
    signals.worker_shutting_down.connect(on_shutting_down, weak=False)
