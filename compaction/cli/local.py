"""Commands that call no API: env tells where it is, sample writes a transcript to try things with."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import typer

from compaction.cli import failures, output
from compaction.cli.connection import address, said
from compaction.cli.output import JsonOption
from compaction.cli.sample import sample_session
from compaction.client import BadAddress


def env(*, as_json: JsonOption = False) -> None:
    """Print the API's address and key as shell lines.

    Use it as: eval "$(compactd env)"
    """
    try:
        found = address(os.environ, Path.cwd())
    except (failures.NoStack, BadAddress) as error:
        raise typer.Exit(said(error) or failures.UNREACHABLE) from None
    variables = {"COMPACTD_URL": found.url, "COMPACTD_API_KEY": found.api_key}
    if as_json:
        output.print_json(variables)
        return
    for name, value in variables.items():
        sys.stdout.write(f"export {name}={shlex.quote(value)}\n")


def sample() -> None:
    """Write the sample session to standard output.

    It is a Claude Code log of about 170,000 tokens by the count of the model's API: compactd sample > session.jsonl
    """
    for line in sample_session():
        sys.stdout.buffer.write(line)
    sys.stdout.flush()
