"""What commands print: tables and words for people, JSON for programs. Problems and progress go to standard error."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

MAX_COLUMNS = 120  # longer lines are hard to read, however wide the window is
PIPED_COLUMNS = 100  # where there is no window

# Everything that could steer a terminal: transcripts are hostile. Line breaks and tabs stay.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def console(*, error: bool = False) -> Console:
    """A console for this call: its width fits the window, without colour when it is no terminal."""
    stream = sys.stderr if error else sys.stdout
    columns = min(shutil.get_terminal_size().columns, MAX_COLUMNS) if stream.isatty() else PIPED_COLUMNS
    return Console(file=stream, width=columns, highlight=False, soft_wrap=False)


def safe(text: str) -> str:
    """`text` without characters that could steer a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def print_json(value: Any) -> None:  # noqa: ANN401 - JSON
    """The value as indented JSON; ASCII only, so that every terminal and pipe takes it."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def say_problem(words: str) -> None:
    """A failure, on standard error."""
    console(error=True).print(Text.assemble(("Error: ", "bold red"), safe(words)))


def say(words: str) -> None:
    """A plain line."""
    console().print(Text(safe(words)))


def facts(pairs: Sequence[tuple[str, str | Text]]) -> Table:
    """Names and values side by side."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, Text(safe(value)) if isinstance(value, str) else value)
    return table


def rows(columns: Sequence[str], lines: Sequence[Sequence[str]], *, right: frozenset[str] = frozenset()) -> Table:
    """A table with a head; the columns named in `right` hold numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for line in lines:
        table.add_row(*(Text(safe(value)) for value in line))
    return table


def number(count: int | None) -> str:
    """A number with separators for thousands."""
    return "–" if count is None else f"{count:,}"


def moment(text: str | None) -> str:
    """A time of the API, to the second."""
    return "–" if text is None else text[:19].replace("T", " ")
