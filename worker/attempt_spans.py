"""The span of one attempt: it goes on with the trace of whoever enqueued the job, and tells what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from compaction import tracing
from compaction.store.jobs import Claim, Finish
from compaction.tracing import OpenSpan


@dataclass(frozen=True, slots=True)
class AttemptSpan:
    """An attempt under way; `traceparent` is its own, or the caller's where nothing is recorded."""

    traceparent: str | None
    _open: OpenSpan

    def ended(self, finish: Finish | None) -> None:
        """Tells the attempt's verdict; None: the job is another worker's now."""
        if finish is None:
            self._open.failed("lease_lost")
            return
        code = (finish.error or {}).get("code")
        made = finish.result
        facts: dict[str, tracing.Fact | None] = {
            "compactd.job.status": finish.status,
            "compactd.job.outcome": finish.outcome,
            "compactd.job.reason": finish.reason,
        }
        if made is not None:
            facts |= {
                "compactd.result.strategy": made.strategy,
                "compactd.result.pre_tokens": made.pre_tokens,
                "compactd.result.post_tokens": made.post_tokens,
                "compactd.result.ptl_attempts": made.ptl_attempts,
            }
        self._open.tell(facts)
        if isinstance(code, str):
            self._open.failed(code)


@contextmanager
def span(claim: Claim) -> Iterator[AttemptSpan]:
    """The span around an attempt of the claimed job."""
    job = claim.job
    facts: dict[str, tracing.Fact | None] = {
        "compactd.job.id": job.id,
        "compactd.session.id": job.session_name,
        "compactd.tenant": claim.tenant,
        "compactd.job.trigger": job.trigger,
        "compactd.job.attempt": job.attempt,
        "compactd.job.age_seconds": round(claim.age_seconds, 3),
        "compactd.lease.token": claim.token,
    }
    with tracing.span("compaction.attempt", "consumer", facts, traceparent=job.traceparent) as opened:
        yield AttemptSpan(tracing.current_traceparent() or job.traceparent, opened)
