"""The doctor: what the service stands on, how each part does, and what to do about what is wrong."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from compaction.cli import failures, output
from compaction.cli.connection import address, run
from compaction.cli.examination import Finding, examine
from compaction.cli.output import JsonOption


def doctor(*, as_json: JsonOption = False) -> None:
    """Check API, key, database, migrations, broker, workers, provider and clocks.

    Ends with 8 when something is wrong, 3 when the API cannot be reached.
    """
    findings = run(examine)
    if as_json:
        output.print_json({"ok": all(found.ok for found in findings), "checks": list(map(asdict, findings))})
    else:
        output.show(Text(f"compactd at {address(os.environ, Path.cwd()).url}", style="bold"), _table(findings))
        output.say(_last_words(findings))
    if not findings[0].ok:
        raise typer.Exit(failures.UNREACHABLE)
    if not all(found.ok for found in findings):
        raise typer.Exit(failures.UNWELL)


def _table(findings: Sequence[Finding]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for found in findings:
        mark = Text("ok", style="green") if found.ok else Text("WRONG", style="bold red")
        table.add_row(mark, found.name, Text(output.safe(found.detail)))
        if found.advice:
            table.add_row("", "", Text(f"→ {found.advice}", style="yellow"))
    return table


def _last_words(findings: Sequence[Finding]) -> str:
    wrong = sum(not found.ok for found in findings)
    return "\nAll is well." if not wrong else f"\n{wrong} of {len(findings)} checks failed."
