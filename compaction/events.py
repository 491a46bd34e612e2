"""The fields of the tengu_ events: sizes, counts, names and codes, never content (DESIGN §3, Telemetry)."""

from __future__ import annotations

from compaction.core import cleanup
from compaction.core.jobs import FAILED_EVENTS, ScopeKind, Trigger
from compaction.core.jsonbytes import Json
from compaction.core.results import CompactionResult
from compaction.errors import JobError, PromptTooLong
from compaction.ports import HookNote
from compaction.task import Survey, Task


def compacted(task: Task, view: Survey, result: CompactionResult) -> dict[str, Json]:
    """The fields of tengu_compact."""
    return _asked(task) | {
        "strategy": result.strategy,
        "pre_tokens": result.pre_tokens,
        "post_tokens": result.post_tokens,
        "usage": result.usage.to_dict(),
        "cost_usd": None if result.cost_usd is None else str(result.cost_usd),
        "model": result.model,
        "cache_sharing": result.strategy == "shared_prefix",
        "cache_read_tokens": result.usage.cache_read_input_tokens,
        "is_recompaction": view.chain > 0,
        "chain": view.chain + 1,
        "turns_since_last": view.turns,
        "ptl_attempts": result.ptl_attempts,
        "dropped_rounds": result.dropped.rounds,
        "dropped_messages": result.dropped.messages,
        "dropped_tokens": result.dropped.tokens,
        "kept_messages": len(result.kept),
        "attachments": len(result.attachments),
        "cleanup": cleanup.names(cleanup.steps_for(task.facts.query_source, result.strategy)),
        "under_threshold": result.under_threshold,
        "degraded": result.degraded,
        "saved_summary_reused": task.paid is not None,
    }


def failed_name(task: Task) -> str:
    """The name of a failure's event: partial compactions have their own."""
    return FAILED_EVENTS[task.order.scope.kind]


def failed(task: Task, error: JobError) -> dict[str, Json]:
    """The fields of tengu_compact_failed and tengu_partial_compact_failed."""
    told = _asked(task) | {"code": error.code, "retryable": error.retryable, "scope": task.order.scope.kind}
    return told | _gap(error)


def failed_outside(
    error: JobError, *, trigger: Trigger, scope: ScopeKind, query_source: str | None, attempt: int
) -> tuple[str, dict[str, Json]]:
    """The event of an attempt that failed around the pipeline: its name and the same fields."""
    asked = _of_order(trigger, query_source, attempt)
    return FAILED_EVENTS[scope], asked | {"code": error.code, "retryable": error.retryable, "scope": scope}


def _gap(error: JobError) -> dict[str, Json]:
    if isinstance(error, PromptTooLong):
        return {"unit": error.unit, "gap": error.gap, "lower_bound": error.lower_bound}
    return {}


def note(one: HookNote) -> dict[str, Json]:
    """A hook's outcome, as results and events show it."""
    return {"name": one.name, "event": one.event, "ok": one.ok, "seconds": one.seconds, "problem": one.problem}


def _asked(task: Task) -> dict[str, Json]:
    return _of_order(task.order.trigger, task.facts.query_source, task.attempt)


def _of_order(trigger: Trigger, query_source: str | None, attempt: int) -> dict[str, Json]:
    return {"trigger": trigger, "auto": trigger == "auto", "query_source": query_source, "attempt": attempt}
