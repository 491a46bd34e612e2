"""Commands about jobs: compact, status, wait, result, jobs, retry, cancel."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from compaction.cli import failures, output
from compaction.cli.connection import run
from compaction.cli.inline import NO_SESSION, conversation_in
from compaction.cli.names import SessionFilter, SessionOrNone
from compaction.cli.output import Column, JsonOption, number
from compaction.cli.progress import PAUSED, line
from compaction.client import Client, Job, TimedOut

STEP_SECONDS = 1  # how often a waiting command looks at the job's progress


_COLUMNS = (
    Column("JOB", whole=True),
    Column("SESSION"),
    Column("TRIGGER", whole=True),
    Column("AGE", whole=True),
    Column("STATUS"),
)


class Status(StrEnum):
    """The states of a job, as an option takes them."""

    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.", show_default=False)]
TimeoutOption = Annotated[
    float | None, typer.Option("--timeout", min=0, metavar="SECONDS", help="Stop waiting after so long.")
]


def compact(  # noqa: PLR0913 - the options of the command
    session: SessionOrNone = None,
    *,
    instructions: Annotated[str | None, typer.Option(help="What the summary must keep or leave out.")] = None,
    up_to: Annotated[
        str | None, typer.Option(metavar="UUID", help="Compact up to this message; keep the rest.")
    ] = None,
    from_: Annotated[str | None, typer.Option("--from", metavar="UUID", help="Compact from this message on.")] = None,
    inline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Compact the messages in this file; no session is stored.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="With --inline: the model, instead of the file's.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the job's end; --timeout does too.")] = False,
    timeout: TimeoutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compact a session, or the messages in a file."""
    if (session is None) == (inline is None):
        raise typer.BadParameter("Name a SESSION, or a file with --inline; one of the two.")
    if up_to is not None and from_ is not None:
        raise typer.BadParameter("Use --up-to or --from, not both.")
    parameters: dict[str, Any] = {"trigger": "manual"}
    if instructions is not None:
        parameters["instructions"] = instructions
    if up_to is not None or from_ is not None:
        parameters["scope"] = {"kind": "from" if up_to is None else "up_to", "uuid": up_to or from_}

    waited = wait or timeout is not None

    async def work(client: Client) -> Job:
        if inline is not None:
            fields = await asyncio.to_thread(conversation_in, inline, model)
            job = await client.enqueue_inline(**fields, **parameters)
        else:
            job = await client.enqueue(session or "", **parameters)
        return await ended(client, job, timeout) if waited else job

    finish(run(work), as_json=as_json, waited=waited)


def status(job: JobArgument, *, as_json: JsonOption = False) -> None:
    """Show a job."""
    show(run(lambda client: client.job(job)), as_json=as_json)


def wait(job: JobArgument, *, timeout: TimeoutOption = None, as_json: JsonOption = False) -> None:
    """Wait for a job's end; exit 1 when it failed."""

    async def work(client: Client) -> Job:
        return await ended(client, await client.job(job), timeout)

    finish(run(work), as_json=as_json, waited=True)


def jobs(
    *,
    status: Annotated[Status | None, typer.Option(help="Only jobs in this state.")] = None,
    session: SessionFilter = None,
    error_code: Annotated[
        str | None, typer.Option(metavar="CODE", help="Only jobs that failed so, as prompt_too_long.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """List jobs, newest first."""
    page = run(lambda client: client.jobs(status=status, session_id=session, error_code=error_code, limit=limit))
    if as_json:
        output.print_json(page)
        return
    if not page["data"]:
        filtered = status or session or error_code
        output.say("No job is like that." if filtered else "There are no jobs. `compactd compact SESSION` makes one.")
        return
    now = datetime.now(UTC)
    lines = [
        (
            job["id"],
            job["session_id"] or NO_SESSION,
            job["trigger"],
            output.age(job["created_at"], now),
            _short_outcome(job),
        )
        for job in page["data"]
    ]
    output.show(output.rows(_COLUMNS, lines))
    if page["has_more"]:
        output.say(f"There are more; --limit shows up to 200 (now {limit}).")


def retry(job: JobArgument, *, as_json: JsonOption = False) -> None:
    """Run a job again that has ended."""
    show(run(lambda client: client.retry(job)), as_json=as_json)


def cancel(job: JobArgument, *, as_json: JsonOption = False) -> None:
    """Cancel a job."""
    show(run(lambda client: client.cancel(job)), as_json=as_json)


async def ended(client: Client, job: Job, timeout_seconds: float | None) -> Job:
    """The job at its end, with a live line meanwhile. Raises TimedOut."""
    with line("compact") as shown:
        async for state in client.watch(job["id"], step_seconds=STEP_SECONDS, timeout_seconds=timeout_seconds):
            job = state
            shown.show_job(job)
        if not job["done"]:
            raise TimedOut(f"The job {job['id']} is still {job['status']} after {timeout_seconds:g} s.")
        shown.end(_short_outcome(job))
    return job


def finish(job: Job, *, as_json: bool, waited: bool) -> None:
    """Shows a job and ends the command with 1 when it was waited for and did not succeed."""
    show(job, as_json=as_json)
    if waited and job["status"] != "succeeded":
        raise typer.Exit(failures.JOB_FAILED)


def show(job: Job, *, as_json: bool) -> None:
    """One job, for people or for programs."""
    if as_json:
        output.print_json(job)
        return
    pairs: list[tuple[str, str | Text]] = [
        ("Job", job["id"]),
        ("Session", job["session_id"] or NO_SESSION),
        ("Status", status_text(job)),
        ("Trigger", f"{job['trigger']}, {_scope(job)}"),
        ("Attempt", f"{job['attempt']} of {job['max_attempts']}"),
        ("Created", f"{output.moment(job['created_at'])} UTC"),
    ]
    if job["progress"].get("reason") == PAUSED:
        pairs.append(("Waits", _pause(job["progress"])))
    if job["ended_at"]:
        pairs.append(("Ended", f"{output.moment(job['ended_at'])} UTC"))
    if job["coalesced"]:
        pairs.append(("Joined", f"{number(job['coalesced'])} more requests"))
    if job["metadata"]:
        pairs.append(("Metadata", json.dumps(job["metadata"])))
    pairs.append(("Next", _next_step(job)))
    output.show(output.facts(pairs))


def _pause(progress: dict[str, Any]) -> str:
    """Of a job that waits for its provider: why, and when it is asked again. The job goes on by itself."""
    until = progress.get("until")
    asked = f"; it is asked again at {output.moment(until)} UTC" if until else ""
    return f"the provider is paused ({progress.get('cause')}){asked}. The job goes on by itself."


def is_final(job: Job) -> bool:
    """Whether the job failed for a reason that running it again would meet again."""
    return job["status"] == "failed" and not (job["error"] is not None and job["error"]["retryable"])


def status_text(job: Job) -> Text:
    """The outcome in its colour."""
    colour = {"succeeded": "green", "failed": "red", "cancelled": "yellow"}.get(job["status"], "cyan")
    return Text(output.safe(_outcome(job)), style=colour)


def _outcome(job: Job) -> str:
    if job["status"] == "succeeded" and not job["was_compacted"]:
        return f"succeeded, nothing compacted ({job['reason']})"
    if job["status"] in {"failed", "retrying"} and job["error"]:
        return f"{job['status']}: {job['error']['code']}. {job['error']['message']}"
    return job["status"]


def _short_outcome(job: Job) -> str:
    """The outcome in a word or two, for a list."""
    if job["status"] == "succeeded" and not job["was_compacted"]:
        return f"skipped: {job['reason']}"
    if job["status"] == "failed" and job["error"]:
        return f"failed: {job['error']['code']}"
    return job["status"]


def _scope(job: Job) -> str:
    scope = job["scope"]
    return "the whole session" if scope["kind"] == "full" else f"{scope['kind']} {scope['uuid']}"


def _next_step(job: Job) -> str:
    if job["result_url"]:
        return f"compactd result {job['id']}"
    if not job["done"]:
        return f"compactd wait {job['id']}"
    if job["status"] == "succeeded" or is_final(job):
        if job["session_id"] is None:
            return "nothing: its messages are as they were"
        return f"compactd session {job['session_id']}"
    return f"compactd retry {job['id']}"
