"""The import command: transcript files become sessions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from compaction.cli import failures, output
from compaction.cli.connection import run
from compaction.cli.names import SessionName
from compaction.cli.output import Column, JsonOption, number
from compaction.cli.progress import line, sizes
from compaction.client import Client, ClientError, Imported, Unreachable

SUFFIXES = frozenset({".jsonl", ".json"})  # what is taken from a folder; a file that is named is always tried

MAX_BLANK_BYTES = 64 * 1024  # a larger file of nothing but blanks is the API's to refuse
MAX_NAME_CHARS = 20  # of a file in the table: session ids need the room of an 80-column window
_COLUMNS = (
    Column("SESSION", whole=True),
    Column("MESSAGES", whole=True, right=True),
    Column("NEW", whole=True, right=True),
    Column("KNOWN", whole=True, right=True),
    Column("FILE", whole=True),
    Column("NOTES"),
)

PathsArgument = Annotated[
    list[Path], typer.Argument(metavar="PATH…", help="Transcript files, or folders with them.", show_default=False)
]


@dataclass(frozen=True, slots=True)
class Sent:
    """One file's outcome: what was imported, or why not."""

    path: Path
    imported: Imported | None
    told: failures.Told | None = None


def import_(
    paths: PathsArgument,
    *,
    session: SessionName = None,
    format_name: Annotated[str, typer.Option("--format", help="auto, or the format's name.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Import transcripts; importing again adds only what is new."""
    files = _files(paths)
    if not files:
        raise typer.BadParameter(f"There are no {' or '.join(sorted(SUFFIXES))} files in the given folders.")
    if session is not None and len(files) > 1:
        raise typer.BadParameter("--session names one session; give one file with it.")

    async def work(client: Client) -> list[Sent]:
        return [await _sent(client, path, session, format_name) for path in files]

    outcomes = run(work)
    if as_json:
        output.print_json([_document(sent) for sent in outcomes])
    else:
        _print(outcomes)
    if worst := max((sent.told.exit_code for sent in outcomes if sent.told), default=0):
        raise typer.Exit(worst)


async def import_one(client: Client, path: Path, *, session: str | None = None, format_name: str = "auto") -> Imported:
    """Imports a file with a live line. Raises ClientError, OSError or failures.EmptyFile."""
    await asyncio.to_thread(_check, path)
    with line(f"import {path.name}") as shown:

        def on_progress(stage: str, done_bytes: int, total_bytes: int) -> None:
            if stage == "sending":  # a tenth of the line: on one machine it takes far less time than reading
                share = 0.1 * done_bytes / max(total_bytes, 1)
                shown.move("sending", share, detail=sizes(done_bytes, total_bytes))
            else:
                shown.move("reading and storing", 0.1 + 0.9 * done_bytes / max(total_bytes, 1))

        imported = await client.import_transcript(
            path, session_id=session, format_name=format_name, on_progress=on_progress
        )
        shown.end(f"{number(imported['head_seq'])} messages, {number(imported['appended'])} new")
    return imported


async def _sent(client: Client, path: Path, session: str | None, format_name: str) -> Sent:
    try:
        return Sent(path, await import_one(client, path, session=session, format_name=format_name))
    except Unreachable:
        raise  # the other files would fare no better
    except (ClientError, OSError, failures.EmptyFile) as error:
        return Sent(path, None, failures.told(error))


def _files(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(item for item in path.rglob("*") if _is_transcript(item, path))
        else:
            found.append(path)
    return found


def _check(path: Path) -> None:
    if path.is_file() and path.stat().st_size <= MAX_BLANK_BYTES and not path.read_bytes().strip():
        raise failures.EmptyFile(str(path))


def _is_transcript(item: Path, folder: Path) -> bool:
    """Whether a file somewhere in a folder is taken: hidden files and folders are other programs' business."""
    hidden = any(part.startswith(".") for part in item.relative_to(folder).parts)
    return item.suffix in SUFFIXES and not hidden and item.is_file()


def _document(sent: Sent) -> dict[str, Any]:
    problem = None if sent.told is None else sent.told.words
    return {"path": str(sent.path), "imported": sent.imported, "problem": problem}


def _print(outcomes: Sequence[Sent]) -> None:
    done = [sent for sent in outcomes if sent.imported is not None]
    lines = [_row(sent.path, sent.imported) for sent in done if sent.imported is not None]
    if lines:
        output.show(output.rows(_COLUMNS, lines))
    for sent in outcomes:
        if sent.told is not None:
            output.say_problem(_naming(sent.path, sent.told.words))
    if len(done) == 1 and done[0].imported is not None:
        output.say(f"\nNext: compactd compact {done[0].imported['session_id']} --wait")


def _naming(path: Path, words: str) -> str:
    return words if str(path) in words else f"{path}: {words}"


def _row(path: Path, imported: Imported) -> tuple[str, ...]:
    return (
        imported["session_id"],
        number(imported["head_seq"]),
        number(imported["appended"]),
        number(imported["duplicates"]),
        output.shortened(path.name, MAX_NAME_CHARS) if sys.stdout.isatty() else path.name,
        _notes(imported["report"]),
    )


def _notes(report: dict[str, Any]) -> str:
    """What the report found that one should know."""
    malformed = report.get("malformed") or {}
    counts = {
        "malformed lines": malformed.get("line_count"),
        "sub-agent rows": report.get("sidechain_rows_skipped"),
        "duplicate rows": report.get("duplicate_uuid_row_count"),
        "rewound rows": report.get("off_branch_rows"),
    }
    return ", ".join(f"{number(count)} {name}" for name, count in counts.items() if count)
