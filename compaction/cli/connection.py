"""Where the API is and with which key: the environment, or the credentials file of the local stack."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import typer

from compaction.cli import failures
from compaction.cli.output import say_problem
from compaction.client import BadAddress, Client
from compaction.client.address import check_api_key, check_url

Outcome = TypeVar("Outcome")

STATE_FILE = "stack.json"
LOCAL_FOLDER = ".local"
MAX_TRIES = 3  # a person waits: an API that is away is told within a second


@dataclass(frozen=True, slots=True)
class Address:
    """Where the API is, and the key for it."""

    url: str
    api_key: str = field(repr=False)


def address(environment: Mapping[str, str], folder: Path) -> Address:
    """COMPACTD_URL and COMPACTD_API_KEY; else stack.json of COMPACTD_LOCAL_DIR, or of .local in `folder` or above.

    Raises failures.NoStack, with words that say what to do, and BadAddress for variables that cannot be one.
    """
    url = environment.get("COMPACTD_URL", "")
    api_key = environment.get("COMPACTD_API_KEY", "")
    if url:
        check_url(url)
    if api_key:
        check_api_key(api_key)
    if url and api_key:
        return Address(url, api_key)
    for place in _places(environment, folder):
        state = _state(place / STATE_FILE)
        if state is not None:
            return Address(url or state.url, api_key or state.api_key)
    if url:
        raise failures.NoStack(
            "COMPACTD_URL is set and COMPACTD_API_KEY is not. Set it to a key of that server (ck_…)."
        )
    raise failures.NoStack(
        "No compactd was found. Start one with `make up`, or set COMPACTD_URL and COMPACTD_API_KEY to a running one."
    )


def run(work: Callable[[Client], Awaitable[Outcome]]) -> Outcome:
    """The outcome of `work` with a client for the found API. A failure ends the command: words and an exit code."""
    try:
        found = address(os.environ, Path.cwd())
        return asyncio.run(_with_client(found, work))
    except KeyboardInterrupt:
        raise typer.Exit(failures.INTERRUPTED) from None
    except Exception as error:
        code = said(error)
        if code is None:
            raise
        raise typer.Exit(code) from None


def said(error: Exception) -> int | None:
    """Says what went wrong and gives the exit code for it; None for what nobody foresaw."""
    told = failures.told(error)
    if told is None:
        return None
    say_problem(told.words)
    return told.exit_code


async def _with_client(found: Address, work: Callable[[Client], Awaitable[Outcome]]) -> Outcome:
    async with Client(found.url, found.api_key, max_tries=MAX_TRIES) as client:
        return await work(client)


def _places(environment: Mapping[str, str], folder: Path) -> list[Path]:
    given = environment.get("COMPACTD_LOCAL_DIR", "")
    if given:
        return [Path(given).expanduser()]
    return [place / LOCAL_FOLDER for place in (folder, *folder.parents)]


def _state(file: Path) -> Address | None:
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        found = Address(str(state["url"]), str(state["api_key"]))
        check_url(found.url)
        check_api_key(found.api_key)
    except (OSError, ValueError, KeyError, TypeError, BadAddress):
        return None
    return found
