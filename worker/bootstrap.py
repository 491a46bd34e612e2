"""The composition root: builds one worker process from its settings and takes it down again."""

from __future__ import annotations

import gc
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from compaction.ports import Summarizer
from compaction.settings import Settings
from compaction.store.engine import Database
from compaction.summarizers.claude import ClaudeSummarizer
from compaction.summarizers.extractive import ExtractiveSummarizer
from compaction.summarizers.watchdog import Deadlines
from worker.assignment import Assignments
from worker.bridge import Bridge
from worker.dispatch import Doorbell
from worker.heartbeat import Heart
from worker.reconciler import Reconciler
from worker.run import Runner


@dataclass(frozen=True, slots=True)
class Process:
    """The parts of a running worker that Celery's signals reach."""

    settings: Settings
    bridge: Bridge
    heart: Heart
    runner: Runner
    database: Database

    def start(self, reconciler: Reconciler) -> None:
        """Starts the loop, the heart and the reconciler; what is loaded by now is kept out of the garbage collector."""
        gc.collect()
        gc.freeze()  # facts/performance.md: the collector is part of the price of each job
        self.bridge.start()
        self.heart.start()
        self.bridge.spawn(reconciler.turn_for_ever())

    def ready(self) -> None:
        """Tells whoever started us that jobs are taken now."""
        if self.settings.ready_file:
            Path(self.settings.ready_file).write_text("{}", encoding="utf-8")

    def stop(self) -> None:
        """Ends the loop's work and the heart; leases that are left end by themselves."""
        self.bridge.stop()
        self.heart.stop()


def start_process(settings: Settings) -> Process:
    """A started worker process. Raises SettingsError when a summarizer cannot be built."""
    bridge = Bridge()
    database = Database(settings.database_url, pool_size=settings.database_pool)
    doorbell = Doorbell(settings.redis_url)
    heart = Heart(
        owner=_owner(),
        database_url=settings.database_url,
        slots=settings.worker_concurrency,
        lease_seconds=settings.lease_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
        lag_seconds=bridge.lag_seconds,
    )
    extractive = ExtractiveSummarizer()
    runner = Runner(
        database=database,
        heart=heart,
        doorbell=doorbell,
        assignments=Assignments(database, settings, _summarizer(settings, extractive), extractive),
        lease_seconds=settings.lease_seconds,
        timeout_seconds=settings.job_timeout_seconds,
        backoff_seconds=settings.backoff_base_seconds,
    )
    process = Process(settings, bridge, heart, runner, database)
    process.start(
        Reconciler(
            database=database,
            doorbell=doorbell,
            every_seconds=settings.reconcile_seconds,
            redispatch_seconds=settings.redispatch_seconds,
        )
    )
    return process


def _summarizer(settings: Settings, extractive: ExtractiveSummarizer) -> Summarizer:
    if not settings.uses_claude:
        return extractive
    return ClaudeSummarizer(
        api_key=settings.anthropic_api_key,
        auth_token=settings.anthropic_auth_token,
        base_url=settings.anthropic_base_url,
        deadlines=Deadlines(total_seconds=settings.call_timeout_seconds, idle_seconds=settings.idle_timeout_seconds),
        max_connections=settings.worker_concurrency + 1,
    )


def _owner() -> str:
    """Unique per process start: a restarted worker is another owner."""
    return f"{socket.gethostname()}:{os.getpid()}:{time.time_ns():x}"
