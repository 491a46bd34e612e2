"""Things that a call names: there for the caller's tenant, or a problem that says what to do."""

from __future__ import annotations

from typing import TypeVar

from compaction.errors import NotFound
from compaction.store.job_rows import JobRow

Thing = TypeVar("Thing")

NO_SESSION = "There is no session of this id. Create it with PUT /v1/sessions/{id}, or import a transcript."
NO_JOB = "There is no job of this id. GET /v1/compactions lists the jobs of this key's tenant."


def found(thing: Thing | None, words: str) -> Thing:
    """`thing` itself. Raises NotFound with `words` when there is none."""
    if thing is None:
        raise NotFound(words)
    return thing


def why_no_result(job: JobRow) -> str:
    """Why the job has no result, and what to do."""
    if not job.done:
        return (
            f"The job is {job.status}; it has no result yet. Wait with GET /v1/compactions/{{id}} and Prefer: wait=30."
        )
    if job.status == "succeeded":
        return f"The job compacted nothing: {job.reason}. The session is as it was."
    if job.status == "cancelled":
        return "The job was cancelled. The session is as it was."
    code = (job.error or {}).get("code", "internal")
    return f"The job failed: {code}. The session is as it was; see the job's `error`."
