"""What the API counts, under the names that dashboards and alerts use. docs/metrics.md is the list for people."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from compaction.store.jobs import Enqueued

REGISTRY = CollectorRegistry()
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)  # long-polls and imports fill the last ones

ENQUEUED = Counter("compaction_jobs_enqueued", "Jobs that were accepted", ("kind",), registry=REGISTRY)
COALESCED = Counter(
    "compaction_jobs_coalesced", "Enqueues that joined a job which was waiting already", ("kind",), registry=REGISTRY
)
LOST_RINGS = Counter("compaction_lost_rings", "Doorbell rings that Redis did not take", registry=REGISTRY)
REQUESTS = Counter("compaction_api_requests", "Answers", ("method", "route", "status"), registry=REGISTRY)
REQUEST_SECONDS = Histogram(
    "compaction_api_request_seconds",
    "From the request's head to the end of its answer",
    ("method", "route"),
    buckets=SECONDS,
    registry=REGISTRY,
)

CONNECTIONS = Gauge(
    "compaction_database_connections", "Connections of this process's pool", ("state",), registry=REGISTRY
)

# A caller may send any word as its method; labels must not grow with it.
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def watch(in_use: Callable[[], int], pool_size: int) -> None:
    """From now on each scrape asks the pool how it is."""
    CONNECTIONS.labels("in_use").set_function(in_use)
    CONNECTIONS.labels("total").set(pool_size)


def enqueued(done: Enqueued) -> None:
    """A job was committed, or joined."""
    (ENQUEUED if done.created else COALESCED).labels(done.job.trigger).inc()


def answered(method: str, route: str, status: int | None, seconds: float) -> None:
    """One request; `route` is the template and never the path, and `status` is None for an answer that broke off."""
    method = method if method in METHODS else "other"
    REQUESTS.labels(method, route, str(status or int(HTTPStatus.INTERNAL_SERVER_ERROR))).inc()
    REQUEST_SECONDS.labels(method, route).observe(seconds)
