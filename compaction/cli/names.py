"""A session's id as an argument takes it: what cannot be one is wrong usage, told before anything is asked."""

from __future__ import annotations

from typing import Annotated

import typer

from compaction.formats.identity import MAX_SESSION_ID_CHARS, is_session_id


def _checked(value: str | None) -> str | None:
    if value is not None and not is_session_id(value):
        raise typer.BadParameter(
            f"A session's id has 1 to {MAX_SESSION_ID_CHARS} characters of A-Z a-z 0-9 . _ : - and no others."
        )
    return value


SessionArgument = Annotated[
    str, typer.Argument(metavar="SESSION", help="The session's id.", show_default=False, callback=_checked)
]
SessionOrNone = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]", help="The session's id; none with --inline.", show_default=False, callback=_checked
    ),
]
SessionFilter = Annotated[str | None, typer.Option("--session", help="Only jobs of this session.", callback=_checked)]
SessionName = Annotated[
    str | None, typer.Option("--session", help="The session's id, for one file.", callback=_checked)
]
