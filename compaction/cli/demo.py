"""The demo: the whole job once, on the sample session that ships with the project or on a file."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.text import Text

from compaction.cli import failures, jobs, output
from compaction.cli.connection import run
from compaction.cli.output import JsonOption, number
from compaction.cli.result_page import api_messages_line, result_facts, summary
from compaction.cli.sample import write_sample
from compaction.cli.transfers import import_one
from compaction.client import Client, ClientError, Imported, Job, Result

STACK_STOPS = "COMPACTD_DEMO_STACK_STOPS"  # set by ops.local when the stack was started for this demo alone
_FIRST_STEPS = (
    ("make up", "first: a stack that goes on, with this session in it"),
    (". .venv/bin/activate", "in a second terminal: `compactd` on your PATH"),
)
CANCEL_SECONDS = 5.0  # the stack stops ten seconds after the signal

Done = tuple[Imported, Job, Result | None]


def demo(
    file: Annotated[Path | None, typer.Argument(help="A transcript of your own.", show_default=False)] = None,
    *,
    stack_stops: Annotated[bool, typer.Option(envvar=STACK_STOPS, hidden=True)] = False,
    as_json: JsonOption = False,
) -> None:
    """Import a session, compact it, and show the result."""
    imported, job, result = run(lambda client: _demonstrated(client, file))
    if as_json:
        output.print_json({"imported": imported, "job": job, "result": result})
    else:
        _print(imported, job, result)
        _print_next(_next_steps(job), stack_stops=stack_stops)
    if job["status"] != "succeeded":
        raise typer.Exit(failures.JOB_FAILED)


async def _demonstrated(client: Client, file: Path | None) -> Done:
    imported = await (_import_sample(client) if file is None else _import_file(client, file))
    accepted = await client.enqueue(imported["session_id"], trigger="manual")
    job = await _ended(client, accepted)
    return imported, job, await client.result(job["id"]) if job["result_url"] else None


async def _ended(client: Client, accepted: Job) -> Job:
    """The job at its end. Whoever interrupts a demo leaves no job behind that the next stack would run."""
    loop, waiting = asyncio.get_running_loop(), asyncio.create_task(jobs.ended(client, accepted, None))
    for stop in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(stop, waiting.cancel)
    try:
        return await waiting
    except asyncio.CancelledError:
        output.say_problem(await _cancelled(client, accepted["id"]))
        raise typer.Exit(failures.INTERRUPTED) from None


async def _cancelled(client: Client, job_id: str) -> str:
    """Cancels the job; how that went."""
    try:
        async with asyncio.timeout(CANCEL_SECONDS):
            await client.cancel(job_id)
    except (ClientError, TimeoutError):
        return f"Interrupted. The job goes on when a stack runs; `compactd cancel {job_id}` ends it."
    return "Interrupted; the job was cancelled."


async def _import_sample(client: Client) -> Imported:
    with TemporaryDirectory(prefix="compactd-demo-") as folder:
        path = Path(folder) / "sample-session.jsonl"
        await asyncio.to_thread(write_sample, path)
        return await import_one(client, path, session=_fresh_name())


async def _import_file(client: Client, path: Path) -> Imported:
    """The file as its own session, or as a fresh one when that was compacted before: a demo has something to show."""
    imported = await import_one(client, path)
    if (await client.session(imported["session_id"]))["live_job_id"] is None:
        return imported
    return await import_one(client, path, session=_fresh_name())


def _fresh_name() -> str:
    """A session's id that no earlier demo used."""
    return f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _print(imported: Imported, job: Job, result: Result | None) -> None:
    pairs: list[tuple[str, str | Text]] = [
        ("Session", f"{imported['session_id']}  ({number(imported['head_seq'])} messages)"),
        ("Job", Text.assemble(f"{job['id']}  ", jobs.status_text(job))),
    ]
    output.show("", output.facts([*pairs, *(result_facts(result) if result else [])]))
    if result is not None:
        output.show(*summary(result), api_messages_line(result))


def _print_next(steps: Sequence[tuple[str, str]], *, stack_stops: bool) -> None:
    """What to try next; first how to have a stack for it, where the one of the demo stops with it."""
    first = _FIRST_STEPS if stack_stops else ()
    output.show("", Text("Try next (the stack of this demo stops now)" if stack_stops else "Try next", style="bold"))
    for command, words in (*first, *steps):
        output.say(f"  {command}  # {words}")


def _next_steps(job: Job) -> list[tuple[str, str]]:
    if not job["result_url"]:
        again = [] if jobs.is_final(job) else [(f"compactd retry {job['id']}", "once more")]
        return [(f"compactd status {job['id']}", "what happened"), *again]
    return [
        (f"compactd result {job['id']} --json", "the whole result"),
        (f"compactd session {job['session_id']}", "how it stands now"),
        ("compactd import PATH", "your own transcript"),
    ]
