"""What fills a session's window, as a picture: bars by kind and by tool, and the files that were read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from compaction.cli.output import number, safe
from compaction.cli.result_page import bar
from compaction.client import Context

BAR_CHARS = 30  # for the largest part: with names and numbers the chart fits into 80 columns
MAX_TOOLS = 8  # lines of tools; the rest is small
MAX_READS = 5  # lines of files that were read again

_WORDS = {
    "user": "user's words",
    "assistant": "agent's words",
    "requests": "tool calls",
    "results": "tool results",
    "system": "system prompt",
    "tools": "tool definitions",
}


def context_chart(found: Context) -> Iterator[RenderableType]:
    """The chart, part by part; parts that are empty are left out."""
    parts = [(_WORDS.get(part["kind"], part["kind"]), part["tokens"], part["percent"]) for part in found["kinds"]]
    used = [(tool["name"], tool["tokens"], tool["percent"]) for tool in found["tools"][:MAX_TOOLS]]
    if any(tokens for _, tokens, _ in parts):
        yield Text("\nWhat fills the window (estimated tokens)", style="bold")
        yield _bars([part for part in parts if part[1]])
    if used:
        yield Text("\nBy tool, calls and results", style="bold")
        yield _bars(used)
    if found["repeated_reads"]:
        yield Text(f"\nRead again: {number(found['wasted_tokens'])} tokens stand there twice", style="bold")
        yield _reads(found)


def _bars(parts: Sequence[tuple[str, int, float]]) -> Table:
    most = max(tokens for _, tokens, _ in parts)
    table = Table.grid(padding=(0, 2))
    for name, tokens, percent in sorted(parts, key=lambda part: -part[1]):
        table.add_row(
            safe(name), Text(number(tokens), justify="right"), f"{percent:5.1f} %", bar(tokens, most, BAR_CHARS)
        )
    return table


def _reads(found: Context) -> Table:
    table = Table.grid(padding=(0, 2))
    for read in found["repeated_reads"][:MAX_READS]:
        table.add_row(safe(read["path"]), f"{read['reads']} ×", f"{number(read['wasted_tokens'])} tokens")
    return table
