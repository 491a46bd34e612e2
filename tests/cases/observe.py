"""What a client, an operator and the provider see of a played case, in the words that the cases' judge asks for.

How our words map to the judge's, where they differ:

- `job_status`: our states `cancelled` and `failed` are `failed`. A skip is a finished job with a reason, so it is
  `succeeded`, as DESIGN §3 wants it, with one exception that the cases' README asks for: a job skipped because the
  breaker is open (`breaker-opens-001`) is observed as failed with the code `circuit_open`.
- `post_messages` is `view=api`, what a producer sends on, also after a failure.
- `history` is `view=full`.
- `dropped` is the result's `dropped`; counts of zero say that nothing was.
- `ptl` is read off the timeline of the jobs: the first event about an error reply is either a retry with its gap or
  the failed attempt with its code.
- `ingest` is `rejected_422` for any 4xx to the session, its messages or its state.
"""

from __future__ import annotations

from typing import Any

from tests.cases.play import Play
from tests.cases.shared import Json


def observe(play: Play) -> dict[str, Any]:
    """The facts that `judge` takes."""
    ingest = "accepted" if play.accepted else "rejected_422"
    seen: dict[str, Any] = {"ingest": ingest, "requests": [call.json() for call in play.service.calls]}
    if not play.accepted:
        return seen
    status, code = outcome(play.last_job)
    return seen | {
        "job_status": status,
        "error_code": code,
        "post_messages": play.service.view(play.session, "api"),
        "history": play.service.view(play.session, "full"),
        "dropped": _dropped(play),
        "breaker_failures": play.service.http.get(f"/v1/sessions/{play.session}/breaker").json()["failures"],
        "ptl": _reading(play),
    }


def outcome(job: Json) -> tuple[str | None, str | None]:
    """The judge's status and error code for one of our jobs."""
    if job["reason"] == "circuit_open":
        return "failed", "circuit_open"
    if job["status"] == "cancelled":
        return "failed", "cancelled"
    return job["status"], None if job["error"] is None else job["error"]["code"]


def timeline(play: Play) -> list[Json]:
    """The events of all jobs, in order."""
    found: list[Json] = []
    for job in play.jobs:
        if "id" in job:
            found += play.service.http.get(f"/v1/compactions/{job['id']}/events?limit=200").json()["data"]
    return found


def _dropped(play: Play) -> bool:
    compacted = [job for job in play.jobs if job["was_compacted"]]
    return any(any(play.service.result(job["id"])["dropped"].values()) for job in compacted)


def _reading(play: Play) -> Json:
    """How the first error reply was read; None when there was none."""
    for event in timeline(play):
        told = event["data"]
        if event["type"] == "tengu_compact_ptl_retry" and told["attempt"]:  # 0 was planned before any reply
            overflow = told["unit"] == "tokens"
            gap = told["gap"] if overflow else None
            return {"is_overflow": overflow, "gap": gap, "lower_bound": overflow and told["lower_bound"]}
        if event["type"] == "tengu_compact_failed":
            return {"is_overflow": told["code"] == "prompt_too_long", "gap": None, "lower_bound": False}
    return None
