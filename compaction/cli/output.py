"""What commands print: tables and words for people, JSON for programs. Problems and progress go to standard error."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

MAX_COLUMNS = 120  # longer lines are hard to read, however wide the window is
PIPED_COLUMNS = 100  # prose where there is no window
PIPED_TABLE_COLUMNS = 500  # tables there: a line per row for grep and cut, never folded

# Everything that could steer a terminal: transcripts are hostile. Line breaks and tabs stay.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def console(*, error: bool = False, piped_columns: int = PIPED_COLUMNS) -> Console:
    """A console for this call: its width fits the window, without colour when it is no terminal."""
    stream = sys.stderr if error else sys.stdout
    columns = min(shutil.get_terminal_size().columns, MAX_COLUMNS) if stream.isatty() else piped_columns
    return Console(file=stream, width=columns, highlight=False)


def show(*parts: RenderableType) -> None:
    """The parts on standard output, without blanks at the ends of lines."""
    for part in parts:
        printer = console(piped_columns=PIPED_TABLE_COLUMNS if isinstance(part, Table) else PIPED_COLUMNS)
        with printer.capture() as captured:
            printer.print(part)
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def safe(text: str) -> str:
    """`text` without characters that could steer a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def print_json(value: Any) -> None:  # noqa: ANN401 - JSON
    """The value as indented JSON; ASCII only, so that every terminal and pipe takes it."""
    sys.stdout.write(json_text(value))


def json_text(value: Any) -> str:  # noqa: ANN401 - JSON
    """What `print_json` prints."""
    return json.dumps(value, indent=2) + "\n"


def say_problem(words: str) -> None:
    """A failure, on standard error."""
    console(error=True).print(Text.assemble(("Error: ", "bold red"), safe(words)), soft_wrap=True)


def say(words: str) -> None:
    """A plain line."""
    sys.stdout.write(safe(words) + "\n")


def facts(pairs: Sequence[tuple[str, str | Text]]) -> Table:
    """Names and values side by side."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, Text(safe(value)) if isinstance(value, str) else value)
    return table


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. `whole` values are never folded: ids are copied, numbers are compared."""

    name: str
    whole: bool = False
    right: bool = False


def rows(columns: Sequence[Column], lines: Sequence[Sequence[str]]) -> Table:
    """A table with a head."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.right else "left"
        table.add_column(column.name, justify=justify, overflow="fold", no_wrap=column.whole)
    for line in lines:
        table.add_row(*(Text(safe(value)) for value in line))
    return table


def shortened(text: str, chars: int) -> str:
    """`text` in at most `chars` characters."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


def number(count: int | None) -> str:
    """A number with separators for thousands."""
    return "–" if count is None else f"{count:,}"


def moment(text: str | None) -> str:
    """A time of the API, to the second."""
    return "–" if text is None else text[:19].replace("T", " ")


def age(text: str, now: datetime) -> str:
    """How long ago a time of the API was, short: `5 min`."""
    seconds = (now - datetime.fromisoformat(text)).total_seconds()
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
