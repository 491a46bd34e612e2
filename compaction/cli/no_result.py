"""Why a job has no result, in words that say what happened and what to do."""

from __future__ import annotations

from compaction.client import Job

_SKIPS = {  # the reasons of DESIGN §5
    "below_threshold": "the session is below the mark of automatic compaction",
    "circuit_open": "the session's circuit breaker is open after failures (`compactd breaker` shows and closes it)",
    "disabled": "compaction is switched off",
    "recursion_guard": "the session is a compaction's own",
    "reactive_mode": "the session is compacted only when the model refuses it as too long",
    "context_collapse": "the session collapses its context by itself",
    "nothing_to_compact": "there is nothing to compact: no user message, or fewer than two rounds",
}


def why_no_result(job: Job) -> str:
    """The words for a job without a result."""
    job_id, session_id = job["id"], job["session_id"]
    if not job["done"]:
        return f"The job is {job['status']}; it has no result yet. `compactd wait {job_id}` waits for it."
    if job["status"] == "succeeded" and not job["was_compacted"]:
        reason = job["reason"] or "unknown"
        why = f"{reason}, {_SKIPS[reason]}" if reason in _SKIPS else reason
        rest = _stands("The session is as it was; ", session_id)
        return f"The job was skipped, so it has no result: {why}. {rest}".strip()
    if job["status"] == "succeeded":
        return f"The result of this job is not kept any more. {_stands('', session_id)}".strip()
    if job["status"] == "cancelled":
        return f"The job was cancelled, so it has no result. `compactd retry {job_id}` runs it again."
    code = job["error"]["code"] if job["error"] else "internal"
    return f"The job failed, so it has no result: {code}. `compactd status {job_id}` says more."


def _stands(before: str, session_id: str | None) -> str:
    """Where to look on; an inline job has no session."""
    return "" if session_id is None else f"{before}`compactd session {session_id}` shows how it stands."
