"""Commands about bulk runs: `bulk SOURCE` imports an archive and compacts it, the others look and steer."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from compaction.cli import archive_import, archive_written, bulk_pages, failures, output
from compaction.cli.archive import ArchiveProblem
from compaction.cli.connection import run
from compaction.cli.names import SessionArgument
from compaction.cli.output import JsonOption
from compaction.cli.progress import line
from compaction.client import Client
from compaction.client.bulk import BulkRun

ORIGINAL = "original"  # no result: the live view as the producer stored it
STORED = "stored"  # the source that is no archive: sessions that are there already
LOOK_SECONDS = 0.5  # between two looks at a run
START = "start"
NOTHING_YET = frozenset({"planning", "ready"})  # a plan has no results to write
_WAITING = frozenset({"planning", "running", "cancelling"})


class Way(StrEnum):
    """How the model's API is paid, as an option takes it."""

    LIVE = "live"
    MESSAGE_BATCHES = "message_batches"


class _SourceFirst(TyperGroup):
    """`bulk SOURCE` is `bulk start SOURCE`: what is no command of the group is a source."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer keeps its Context to itself
        """Puts the command in that most people leave out."""
        if args and args[0] not in self.commands and args[0] not in {"-h", "--help"}:
            args = [START, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_SourceFirst,
    no_args_is_help=True,
    help=f"Compact an archive anew: bulk SOURCE, a path, an address or `{STORED}`; then status, pause, resume, …",
)

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="The run's id.", show_default=False)]
SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help=f"A file, a folder, file://…, s3://…, or `{STORED}` for sessions that are stored already.",
        show_default=False,
    ),
]


@app.command(START)
def start(  # noqa: PLR0913 - the options of the command
    source: SourceArgument,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan only; `bulk resume RUN` carries it out.")] = False,
    sample: Annotated[int | None, typer.Option(min=1, help="So many first; `bulk resume RUN` does the rest.")] = None,
    max_usd: Annotated[float | None, typer.Option(min=0, help="Stop before more is spent.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Stop before more tokens are used.")] = None,
    way: Annotated[Way, typer.Option(help="Batches cost half and take up to a day.")] = Way.LIVE,
    model: Annotated[str | None, typer.Option(help="Who writes the summaries.")] = None,
    instructions: Annotated[str | None, typer.Option(help="What each summary must keep or leave out.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Also open breakers and what failed before.")] = False,
    prefix: Annotated[str | None, typer.Option(help="Stored sessions whose id begins so.")] = None,
    idle_days: Annotated[float | None, typer.Option(min=0, help="Stored sessions unchanged for so long.")] = None,
    min_tokens: Annotated[int | None, typer.Option(min=0, help="Only sessions of at least so many.")] = None,
    to: Annotated[str | None, typer.Option(metavar="URL", help="Write compacted files and a manifest there.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Import an archive and compact it anew; an unchanged session is not paid for twice."""
    order: dict[str, Any] = {
        "dry_run": dry_run,
        "way": way.value,
        "force": force,
        "sample": sample,
        "max_usd": max_usd,
        "max_tokens": max_tokens,
        "model": model,
        "instructions": instructions,
    }
    selection: dict[str, Any] = {"id_prefix": prefix, "idle_days": idle_days, "min_tokens": min_tokens}

    async def work(client: Client) -> tuple[BulkRun, list[str]]:
        problems: list[str] = []
        if source != STORED:
            sent = await _imported(client, source)
            problems, selection["session_ids"] = sent.problems, sent.session_ids
        wanted = _given(order) | {"selection": _given(selection)}
        done = await _followed(client, await client.bulk.start(wanted))
        if to is not None and done["state"] not in NOTHING_YET:
            problems += _missed(await archive_written.write(client, done["id"], to))
        return done, problems

    done, problems = _run(work)
    _show(done, as_json=as_json)
    for problem in problems:
        output.say_problem(problem)
    _leave(done, failed=bool(problems))


@app.command()
def status(run_id: RunArgument, *, as_json: JsonOption = False) -> None:
    """Show a run."""
    _show(_run(lambda client: client.bulk.run(run_id)), as_json=as_json)


@app.command()
def wait(run_id: RunArgument, *, as_json: JsonOption = False) -> None:
    """Follow a run until it ends, or waits for somebody."""

    async def work(client: Client) -> BulkRun:
        return await _followed(client, await client.bulk.run(run_id))

    done = _run(work)
    _show(done, as_json=as_json)
    _leave(done)


@app.command()
def pause(run_id: RunArgument, *, as_json: JsonOption = False) -> None:
    """Begin no further session."""
    _show(_run(lambda client: client.bulk.pause(run_id)), as_json=as_json)


@app.command()
def resume(run_id: RunArgument, *, as_json: JsonOption = False) -> None:
    """Go on after a pause, a plan or a sample, and follow the run."""

    async def work(client: Client) -> BulkRun:
        return await _followed(client, await client.bulk.resume(run_id))

    done = _run(work)
    _show(done, as_json=as_json)
    _leave(done)


@app.command()
def cancel(run_id: RunArgument, *, as_json: JsonOption = False) -> None:
    """End a run; results that are there stay."""
    _show(_run(lambda client: client.bulk.cancel(run_id)), as_json=as_json)


@app.command()
def results(run_id: RunArgument) -> None:
    """Print each session with its result, one JSON line each."""

    async def work(client: Client) -> None:
        async for told in client.bulk.results(run_id):
            bulk_pages.print_line(told)

    _run(work)


@app.command()
def write(
    run_id: RunArgument,
    *,
    to: Annotated[str, typer.Option(metavar="URL", help="A folder or bucket for the files.", show_default=False)],
) -> None:
    """Write the compacted sessions of a run and a manifest, now or again: what is there already is replaced."""

    async def work(client: Client) -> archive_written.Written:
        found = await client.bulk.run(run_id)
        if found["state"] in NOTHING_YET:
            raise ArchiveProblem(f"The run is {found['state']}: it has no results. `compactd bulk resume` makes them.")
        return await archive_written.write(client, run_id, to)

    done = _run(work)
    output.say(f"{output.number(done.files)} files and {archive_written.MANIFEST} written to {to}.")
    for problem in _missed(done):
        output.say_problem(problem)
    if done.lost:
        raise typer.Exit(failures.JOB_FAILED)


@app.command()
def report(
    run_id: RunArgument,
    *,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the page with charts there.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a run did: sizes, ratios, failures, cost."""

    async def work(client: Client) -> tuple[dict[str, Any], str]:
        page = await client.bulk.report_page(run_id) if html is not None else ""
        return await client.bulk.report(run_id), page

    told, page = _run(work)
    if html is not None:
        html.write_text(page, encoding="utf-8")
    if as_json:
        output.print_json(told)
    else:
        bulk_pages.print_report(told)


@app.command()
def versions(session: SessionArgument, *, as_json: JsonOption = False) -> None:
    """List a session's results, newest first."""
    _show_versions(_run(lambda client: client.bulk.versions(session)), as_json=as_json)


@app.command()
def choose(
    session: SessionArgument,
    job: Annotated[str, typer.Argument(metavar="JOB", help=f"The job whose result it is, or `{ORIGINAL}`.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Go back to another result of a session, or to none."""
    chosen = None if job == ORIGINAL else job
    _show_versions(_run(lambda client: client.bulk.choose(session, chosen)), as_json=as_json)


@app.command("list")
def list_(*, as_json: JsonOption = False) -> None:
    """List runs, newest first."""
    page = _run(lambda client: client.bulk.runs())
    if as_json:
        output.print_json(page)
    else:
        bulk_pages.print_runs(page["data"])


def _run(work: Callable[[Client], Any]) -> Any:  # noqa: ANN401 - whatever the work gives
    """As `connection.run`, with an archive's own trouble in words."""
    try:
        return run(work)
    except ArchiveProblem as problem:
        output.say_problem(str(problem))
        raise typer.Exit(failures.USAGE) from None


async def _imported(client: Client, source: str) -> archive_import.Sent:
    with tempfile.TemporaryDirectory(prefix="compactd-bulk-") as scratch, line("import") as shown:
        sent = await archive_import.send(
            client, source, Path(scratch), lambda count: shown.move("reading and storing", None, detail=f"{count}")
        )
        shown.end(f"{output.number(len(sent.session_ids))} sessions")
    if not sent.session_ids:
        raise ArchiveProblem(f"Nothing in {source} could be imported. " + " ".join(sent.problems[:1]))
    return sent


async def _followed(client: Client, found: BulkRun) -> BulkRun:
    """The run once it has ended or waits for somebody, with a live line meanwhile."""
    began = time.monotonic()
    with line("bulk") as shown:
        while found["state"] in _WAITING:
            done, share, detail = bulk_pages.progress(found, time.monotonic() - began)
            shown.move(done, share, detail=detail)
            await asyncio.sleep(LOOK_SECONDS)
            found = await client.bulk.run(found["id"])
        shown.end(bulk_pages.outcome(found))
    return found


def _show_versions(told: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.print_json(told)
    else:
        bulk_pages.print_versions(told)


def _missed(written: archive_written.Written) -> list[str]:
    if not written.lost:
        return []
    return [f"{output.number(written.lost)} results were deleted meanwhile and have no file; a new run makes them."]


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _show(found: BulkRun, *, as_json: bool) -> None:
    if as_json:
        output.print_json(found)
    else:
        bulk_pages.print_run(found)


def _leave(found: BulkRun, *, failed: bool = False) -> None:
    """Ends the command with 1 when something was not compacted that should have been."""
    if failed or found["request_counts"]["errored"] or found["request_counts"]["expired"]:
        raise typer.Exit(failures.JOB_FAILED)
