"""What is true of the whole queue: told by the leader's /metrics alone, so that nothing counts twice over workers."""

from __future__ import annotations

import time
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from compaction.core.jobs import TRIGGERS
from compaction.store import gauges
from compaction.store.engine import Database
from compaction.store.gauges import QueueState
from worker.metrics import REGISTRY

LOOK_SECONDS = 10.0  # under a usual scrape interval of 15 s; a look costs the database 10 ms at 50,000 waiting jobs
STATUSES = ("queued", "running", "retrying")
PHASES = ("open", "paused", "trial")
NAMES = (  # what a leader tells; the first one everybody does
    "compaction_reconciler_leader",
    "compaction_reconciler_last_success_timestamp_seconds",
    "compaction_jobs",
    "compaction_oldest_queued_age_seconds",
    "compaction_broker_queue_length",
    "compaction_provider_phase",
    "compaction_breaker_open",
    "compaction_webhook_delivery_pending",
)


class QueueGauges(Collector):
    """The newest look at the queue; nothing at all while another worker leads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._state: QueueState | None = None
        self._broker_length: int | None = None
        self._turned_at = 0.0
        self._look_at = 0.0
        REGISTRY.register(self)

    async def turned(self, broker_length: int | None) -> None:
        """The leader finished a turn; looks at the queue when the last look is old. Raises Unavailable."""
        self._turned_at = time.time()
        self._broker_length = broker_length
        now = time.monotonic()
        if self._state is None or now >= self._look_at:
            async with self._database.connect() as conn:
                self._state = await gauges.queue_state(conn)
            self._look_at = now + LOOK_SECONDS

    def stepped_down(self) -> None:
        """Another worker may lead now: what we knew is not ours to tell any more."""
        self._state = None

    def collect(self) -> Iterable[Metric]:
        """The gauges, for one scrape."""
        state = self._state
        leads = GaugeMetricFamily("compaction_reconciler_leader", "1 on the worker that leads", value=state is not None)
        return [leads] if state is None else [leads, *self._told(state)]

    def _told(self, state: QueueState) -> list[Metric]:
        told: list[Metric] = [
            _jobs(state),
            _oldest(state),
            _providers(state),
            _plain("breaker_open", "Sessions whose automatic compactions are stopped", state.open_breakers),
            _plain("webhook_delivery_pending", "News that no receiver has taken yet", state.pending_webhooks),
            _plain(
                "reconciler_last_success_timestamp_seconds", "When the leader finished its last turn", self._turned_at
            ),
        ]
        if self._broker_length is not None:
            told.append(_plain("broker_queue_length", "Rings in Redis that no worker has heard", self._broker_length))
        return told


def _plain(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"compaction_{name}", text, value=value)


def _jobs(state: QueueState) -> Metric:
    family = GaugeMetricFamily("compaction_jobs", "Jobs that have not ended", labels=("state", "kind"))
    for status in STATUSES:
        for trigger in TRIGGERS:
            family.add_metric((status, trigger), state.jobs.get((status, trigger), 0))
    return family


def _oldest(state: QueueState) -> Metric:
    text = "How long the oldest job that may run now has been waiting; 0: none waits"
    family = GaugeMetricFamily("compaction_oldest_queued_age_seconds", text, labels=("kind",))
    for trigger in TRIGGERS:
        family.add_metric((trigger,), state.oldest_seconds.get(trigger, 0.0))
    return family


def _providers(state: QueueState) -> Metric:
    family = GaugeMetricFamily("compaction_provider_phase", "1 for the phase it is in", labels=("provider", "phase"))
    for name, phase in state.providers.items():
        for known in PHASES:
            family.add_metric((name, known), float(known == phase))
    return family
