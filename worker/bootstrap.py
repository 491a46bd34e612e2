"""The composition root: builds one worker process from its settings and takes it down again."""

from __future__ import annotations

import gc
import os
import socket
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compaction import telemetry
from compaction.core import jsonbytes
from compaction.hooks.chain import HookSources
from compaction.hooks.guarded import GuardedCaller
from compaction.hooks.plugins import load_plugins
from compaction.limits import ignored_in_settings
from compaction.ports import Summarizer
from compaction.settings import Settings
from compaction.store import bodies
from compaction.store.engine import Database
from compaction.summarizers.claude import ClaudeSummarizer
from compaction.summarizers.claude_batches import ClaudeBatches
from compaction.summarizers.extractive import ExtractiveSummarizer
from compaction.summarizers.models import platform_facts
from compaction.summarizers.watchdog import Deadlines
from compaction.webhooks.sender import Sender
from worker import memory, scrape
from worker.assignment import Assignments
from worker.batcher import Batcher
from worker.bridge import Bridge, Closing
from worker.bulk import Conductor
from worker.bulk_plan import Planner
from worker.dispatch import Doorbell
from worker.dispatcher import Dispatcher
from worker.drain import Drain
from worker.gauges import QueueGauges
from worker.heartbeat import Heart
from worker.limiter import Limiter
from worker.provider import Provider, provider_name
from worker.reconciler import Reconciler
from worker.retention import Retention
from worker.run import Runner
from worker.scrape import Health, Scrape
from worker.shared_limits import SharedLimits
from worker.sharers import Sharers
from worker.tallying import Tallying
from worker.webhooks import Courier

# Decoded histories are thousands of containers that come and go by their counts alone; the default of 700 looks at all
# of them again and again. Measured on jobs of 400 KB: a tenth of their CPU (docs/performance.md). What does need the
# collector, some hundreds of objects a job, waits for a hundred jobs and takes a few megabytes.
GC_THRESHOLDS = (50_000, 10, 10)

_log = telemetry.logger("worker")


@dataclass(frozen=True, slots=True)
class Process:
    """The parts of a running worker that Celery's signals reach."""

    settings: Settings
    bridge: Bridge
    heart: Heart
    runner: Runner
    database: Database
    drain: Drain
    scrape: Scrape | None = None
    closing: tuple[Closing, ...] = ()  # in their order, once nothing runs any more

    def start(self, *chores: Coroutine[Any, Any, None]) -> None:
        """Starts the loop, the heart and the chores."""
        gc.set_threshold(*GC_THRESHOLDS)
        self.bridge.start()
        self.heart.start()
        for chore in chores:
            self.bridge.spawn(chore)

    def ready(self) -> None:
        """Tells whoever started us that jobs are taken now; what is loaded by now is no garbage."""
        gc.collect()
        gc.freeze()
        if self.scrape is not None:
            self.scrape.health.listens = True
        _log.info("worker.ready", owner=self.heart.owner, slots=self.heart.slots)
        if self.settings.ready_file:
            Path(self.settings.ready_file).write_text(self._facts(), encoding="utf-8")
        if self.settings.worker_max_rss_mb is not None:  # not before: until now SIGTERM would end us on the spot
            self.bridge.spawn(memory.watch(self.settings.worker_max_rss_mb))

    def _facts(self) -> str:
        return jsonbytes.encode({} if self.scrape is None else {"metrics_port": self.scrape.port}).decode()

    def stop(self) -> None:
        """Ends the loop's work, closes what it used, then ends the heart; leases that are left end by themselves."""
        if self.scrape is not None:
            self.scrape.stop()
        self.bridge.stop(*self.closing)
        self.heart.stop()


def start_process(settings: Settings) -> Process:
    """A started worker process. Raises SettingsError when a summarizer cannot be built."""
    bodies.use_keys(settings.body_keys)
    _tell_what_is_ignored(settings)
    bridge = Bridge()
    database = Database(settings.database_url, pool_size=settings.database_pool)
    doorbell = Doorbell(settings.redis_url)
    extractive = ExtractiveSummarizer()
    summarizer = _summarizer(settings, extractive)
    name = provider_name(settings)
    limiter = _limiter(settings, database, name)
    provider = Provider(database, summarizer, name=name, limiter=limiter, base_seconds=settings.backoff_base_seconds)
    heart = Heart(
        owner=_owner(),
        database_url=settings.database_url,
        slots=settings.worker_concurrency,
        lease_seconds=settings.lease_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
        lag_seconds=bridge.lag_seconds,
        provider=name,
    )
    assignments = Assignments(database, settings, provider, extractive, _hooks(settings))
    runner = Runner(
        database=database,
        heart=heart,
        doorbell=doorbell,
        assignments=assignments,
        provider=provider,
        lease_seconds=settings.lease_seconds,
        timeout_seconds=settings.job_timeout_seconds,
        backoff_seconds=settings.backoff_base_seconds,
    )
    process = Process(
        settings,
        bridge,
        heart,
        runner,
        database,
        Drain(heart, settings.drain_seconds),
        _scrape(settings, heart, bridge, database),
        closing=(
            *([summarizer.aclose] if isinstance(summarizer, ClaudeSummarizer) else []),
            *([limiter.aclose] if limiter is not None else []),
            doorbell.aclose,
            database.close,
        ),
    )
    chores = [
        _reconciler(
            settings, database, doorbell, _batcher(settings, database, assignments, summarizer)
        ).turn_for_ever(),
        provider.probe_for_ever(settings.reconcile_seconds),
    ]
    if limiter is not None:
        chores.append(limiter.keep_for_ever())
    process.start(*chores)
    return process


def _tell_what_is_ignored(settings: Settings) -> None:
    for problem in ignored_in_settings(settings):
        _log.warning("settings.ignored", problem=problem)


def _scrape(settings: Settings, heart: Heart, bridge: Bridge, database: Database) -> Scrape | None:
    """None where nobody asks for metrics."""
    if settings.metrics_port is None:
        return None
    scrape.watch(heart, bridge.lag_seconds, database)
    return Scrape(settings.host, settings.metrics_port, Health(heart, bridge.lag_seconds, settings.lease_seconds))


def _batcher(
    settings: Settings, database: Database, assignments: Assignments, summarizer: Summarizer
) -> Batcher | None:
    """What sends a bulk run's batches; None where the summarizer's platform has none."""
    if not isinstance(summarizer, ClaudeSummarizer) or not platform_facts("anthropic").batches:
        return None
    return Batcher(
        database,
        ClaudeBatches(summarizer),
        assignments,
        max_bytes=settings.batch_max_bytes,
        poll_seconds=settings.batch_poll_seconds,
        grace_seconds=settings.batch_grace_seconds,
    )


def _reconciler(
    settings: Settings, database: Database, doorbell: Doorbell, batcher: Batcher | None = None
) -> Reconciler:
    return Reconciler(
        database=database,
        dispatcher=Dispatcher(
            database=database,
            doorbell=doorbell,
            redispatch_seconds=settings.redispatch_seconds,
            lease_seconds=settings.lease_seconds,
            tenant_jobs=settings.limit_tenant_calls,
        ),
        alarm=doorbell,
        retention=Retention(
            database, job_days=settings.retention_days or None, idempotency_days=settings.idempotency_days or None
        ),
        tallying=Tallying(database),
        courier=_courier(settings, database),
        conductor=Conductor(database, Planner(settings), doorbell, batcher),
        gauges=QueueGauges(database),
        every_seconds=settings.reconcile_seconds,
        lease_seconds=settings.lease_seconds,
        heartbeat_seconds=settings.heartbeat_seconds,
    )


def _courier(settings: Settings, database: Database) -> Courier:
    """Calls with connections of its own: slow receivers of news do not delay the hooks of jobs."""
    return Courier(
        database,
        Sender(GuardedCaller(settings.hook_rules), settings.webhook_timeout_seconds),
        timeout_seconds=settings.webhook_timeout_seconds,
        base_seconds=settings.webhook_backoff_seconds,
        disable_days=settings.webhook_disable_days,
    )


def _limiter(settings: Settings, database: Database, provider: str | None) -> Limiter | None:
    """None where nothing is limited: then nobody asks Redis."""
    if provider is None or not settings.limits.are_set:
        return None
    shared = SharedLimits(settings.redis_url, provider, settings.limits)
    return Limiter(shared, settings.limits, sharers=Sharers(database, provider, settings.lease_seconds))


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


def _hooks(settings: Settings) -> HookSources:
    """The operator's plugins, and what calls the tenants' endpoints. Raises SettingsError for a plugin that is none."""
    return HookSources(load_plugins(settings.hook_plugin_seconds), GuardedCaller(settings.hook_rules))


def _owner() -> str:
    """Unique per process start: a restarted worker is another owner."""
    return f"{socket.gethostname()}:{os.getpid()}:{time.time_ns():x}"
