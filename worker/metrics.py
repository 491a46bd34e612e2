"""What a worker counts, under the names that dashboards and alerts use. docs/metrics.md is the list for people.

Everything is per process and only grows, so Prometheus may add it up over workers. What is true of the whole queue, and
would be counted once per worker, stands in `worker.gauges`: the leader alone tells it.
"""

from __future__ import annotations

from decimal import Decimal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from compaction.store.jobs import Claim, Finish
from compaction.store.results import NewResult

REGISTRY = CollectorRegistry()

# A summary takes ten seconds to two minutes; a job may wait for hours in a bulk run.
SECONDS = (0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 900, 3600, 21_600)
WAIT_SECONDS = (0.05, 0.25, 1, 2.5, 5, 15, 60)  # of a call for its place within the provider's limits

_BY = ("kind", "reason")  # the trigger; the error code or skip reason, empty when there is none


def _counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
    return Counter(f"compaction_{name}", text, labels, registry=REGISTRY)


def _seconds(name: str, text: str) -> Histogram:
    return Histogram(f"compaction_{name}", text, ("kind",), buckets=SECONDS, registry=REGISTRY)


CLAIMED = _counter("jobs_claimed", "Jobs that this worker took", ("kind",))
OUTCOMES = {
    "succeeded": _counter("jobs_succeeded", "Jobs that ended with a result", _BY),
    "skipped": _counter("jobs_skipped", "Jobs that ended because nothing was to be done", _BY),
    "failed": _counter("jobs_failed", "Jobs that failed for good", _BY),
    "cancelled": _counter("jobs_cancelled", "Running jobs that their owner cancelled", _BY),
    "retrying": _counter("jobs_retried", "Attempts that failed and are tried again", _BY),
    "snoozed": _counter("jobs_snoozed", "Attempts that a rate limit sent back", _BY),
    "released": _counter("jobs_interrupted", "Attempts given back for no fault of the job", _BY),
}
DEAD = _counter("jobs_dead", "Jobs given up because too many workers died with them")
LEASES_EXPIRED = _counter("lease_expired", "Leases that ended without a word from their worker")
FENCED = _counter("fenced_commits", "Commits refused because the lease was another worker's by then")
DUPLICATES = _counter("duplicate_delivery", "Rings for a job that was not there to be claimed any more")
RINGS = _counter("redispatch", "Rings by the leader: jobs whose turn came, or whose first ring was lost")

QUEUE_WAIT = _seconds("job_queue_wait_seconds", "From the enqueue to the first claim")
RUN = _seconds("job_run_seconds", "One attempt, from its claim to its commit")
END_TO_END = _seconds("job_end_to_end_seconds", "From the enqueue to the job's end")

LLM_REQUESTS = _counter("llm_requests", "Calls to the model")
LLM_TOKENS = _counter("llm_tokens", "Tokens of finished jobs as the provider counts them", ("model", "type"))
LLM_COST = _counter("llm_cost_usd", "Price of finished jobs by the price table", ("model",))
LLM_WAIT = Histogram(
    "compaction_llm_ratelimit_wait_seconds",
    "How long a call waited for its place within our own limits",
    buckets=WAIT_SECONDS,
    registry=REGISTRY,
)
RESULTS = _counter("results", "Results by how they were made", ("strategy",))
PTL_RETRIES = _counter("ptl_retries", "Cuts after the provider said that the prompt was too long")
TOKENS_BEFORE = _counter("tokens_before", "Tokens of the histories that were replaced")
TOKENS_AFTER = _counter("tokens_after", "Tokens of what replaced them")

SLOTS = Gauge("compaction_worker_slots", "Slots of this worker", ("state",), registry=REGISTRY)
LOOP_LAG = Gauge("compaction_event_loop_lag_seconds", "How late this worker's loop turns", registry=REGISTRY)
CONNECTIONS = Gauge(
    "compaction_database_connections", "Connections of this process's pool", ("state",), registry=REGISTRY
)
HEARTBEAT_AGE = Gauge(
    "compaction_worker_heartbeat_age_seconds", "Since the last beat that was stored", registry=REGISTRY
)


def claimed(claim: Claim) -> None:
    """A job was taken; its first claim tells how long it had waited."""
    kind = claim.job.trigger
    CLAIMED.labels(kind).inc()
    if claim.job.attempt == 1 and claim.job.crashes == 0:
        QUEUE_WAIT.labels(kind).observe(claim.age_seconds)


def committed(claim: Claim, finish: Finish, run_seconds: float) -> None:
    """An attempt's verdict was stored."""
    kind = claim.job.trigger
    reason = finish.reason or str((finish.error or {}).get("code", ""))
    OUTCOMES[finish.outcome or finish.status].labels(kind, reason).inc()
    RUN.labels(kind).observe(run_seconds)
    if finish.status != "retrying":
        END_TO_END.labels(kind).observe(claim.age_seconds + run_seconds)
    if finish.result is not None:
        _made(finish.result)


def _made(result: NewResult) -> None:
    RESULTS.labels(result.strategy).inc()
    PTL_RETRIES.inc(result.ptl_attempts)
    TOKENS_BEFORE.inc(result.pre_tokens)
    TOKENS_AFTER.inc(result.post_tokens)
    if result.model is None:
        return
    for name, count in result.usage.items():
        if name.endswith("_tokens"):
            LLM_TOKENS.labels(result.model, name.removesuffix("_tokens")).inc(count)
    LLM_COST.labels(result.model).inc(float(result.cost_usd or Decimal(0)))
