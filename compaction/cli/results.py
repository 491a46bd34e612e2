"""The result command: a page for people, or a format for programs on standard output or in a new file."""

from __future__ import annotations

import asyncio
import errno
import sys
from collections.abc import Awaitable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from compaction.cli import failures, output
from compaction.cli.connection import run
from compaction.cli.jobs import JobArgument
from compaction.cli.no_result import why_no_result
from compaction.cli.output import JsonOption, number
from compaction.cli.result_page import print_result
from compaction.client import Client, Refused

T = TypeVar("T")


class Format(StrEnum):
    """The formats of a result, as an option takes them."""

    ENVELOPES = "envelopes"
    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    CLAUDE_CODE = "claude_code"


def result(
    job: JobArgument,
    *,
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="For programs: the whole result, a request's members, or rows to append to a Claude Code log.",
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write a new file instead of standard output.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the result of a job; --json and --format give it to programs."""
    if as_json and format_ not in {None, Format.ENVELOPES}:
        raise typer.BadParameter("--json is --format envelopes; use one of them.")
    if format_ is None and file is None and not as_json:
        print_result(run(lambda client: _found(client, job, client.result(job))))
        return
    wanted = format_ or Format.ENVELOPES

    async def work(client: Client) -> bytes:
        data = await _found(client, job, _written(client, job, wanted))
        if file is not None:
            await asyncio.to_thread(_save, file, data)
        return data

    data = run(work)
    if file is None:
        _print(data)
    else:
        output.say(f"{file}: {number(len(data))} bytes")


async def _found(client: Client, job_id: str, asked: Awaitable[T]) -> T:
    """What was asked for. Raises failures.NoResult when the job is there and has no result."""
    try:
        return await asked
    except Refused as error:
        if error.code != "not_found":
            raise
    raise failures.NoResult(why_no_result(await client.job(job_id)))


async def _written(client: Client, job: str, wanted: Format) -> bytes:
    """The result as bytes: JSON for people to look at too, the rows of a log as they are."""
    match wanted:
        case Format.ENVELOPES:
            return _document(await client.result(job))
        case Format.ANTHROPIC:
            return _document(await client.result(job, "anthropic"))
        case Format.OPENAI:
            return _document(await client.result(job, "openai"))
        case Format.CLAUDE_CODE:
            return await client.result(job, "claude_code")


def _document(value: Mapping[str, Any]) -> bytes:
    return output.json_text(value).encode()


def _save(file: Path, data: bytes) -> None:
    """Never over a file that is there: it may be the very log that the rows go on. Raises OSError."""
    if not file.parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "there is no such folder", str(file.parent))
    with file.open("xb") as opened:
        opened.write(data)


def _print(data: bytes) -> None:
    """The bytes themselves; on a terminal without what could steer it."""
    if sys.stdout.isatty():
        sys.stdout.write(output.safe(data.decode("utf-8", "replace")))
        return
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
