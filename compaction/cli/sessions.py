"""Commands about sessions: session, breaker."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.text import Text

from compaction.cli import output
from compaction.cli.connection import run
from compaction.cli.context_page import context_chart
from compaction.cli.names import SessionArgument
from compaction.cli.output import JsonOption, number
from compaction.cli.result_page import bar
from compaction.client import Breaker, Client, Context, Job, Refused, Session

_LEVELS = {
    "ok": ("green", "fits well"),
    "warning": ("yellow", "getting full"),
    "error": ("yellow", "nearly full"),
    "auto": ("red", "over the mark of automatic compaction"),
    "blocked": ("red", "full: nothing more fits"),
}


def session(
    session: SessionArgument,
    *,
    erase: Annotated[bool, typer.Option("--erase", help="Delete it and everything of it, for good.")] = False,
    cancel_jobs: Annotated[
        bool, typer.Option("--cancel-jobs", help="With --erase: also while jobs of it have not ended.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --erase: do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show how a session stands and what fills its window, or erase it."""
    if erase:
        _erase(session, cancel_jobs=cancel_jobs, yes=yes, as_json=as_json)
        return
    if cancel_jobs or yes:
        raise typer.BadParameter("--cancel-jobs and --yes belong to --erase.")
    found, filled, newest = run(lambda client: _looked_at(client, session))
    if as_json:
        output.print_json({**found, "context": filled})
    else:
        output.show(output.facts(_session_facts(found, newest)), *context_chart(filled))


def _erase(session: str, *, cancel_jobs: bool, yes: bool, as_json: bool) -> None:
    if not yes:
        _make_sure(session)
    erased = run(lambda client: client.erase_session(session, cancel_jobs=cancel_jobs))
    if as_json:
        output.print_json(erased)
        return
    counts = (
        f"{number(erased['messages'])} messages, {number(erased['jobs'])} jobs, {number(erased['results'])} results"
    )
    pairs: list[tuple[str, str | Text]] = [("Erased", erased["session_id"]), ("Gone", counts)]
    pairs.append(("Left", "nothing here; backups and your own copies keep what they have"))
    output.show(output.facts(pairs))


def _make_sure(session: str) -> None:
    """Has a person type the session's id. Raises typer.BadParameter where nobody can, and for another id."""
    if not sys.stdin.isatty():
        raise typer.BadParameter("--erase deletes for good; say --yes where nobody can be asked.")
    output.say(f"This deletes the session {session} with all its messages, jobs and results. It cannot be taken back.")
    if typer.prompt("Type its id to go on", err=True, default="", show_default=False) != session:
        raise typer.BadParameter("that is another id; nothing was erased.")


def breaker(
    session: SessionArgument,
    *,
    reset: Annotated[bool, typer.Option("--reset", help="Close it: let automatic compactions run again.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show or reset a session's circuit breaker."""
    found = run(lambda client: client.reset_breaker(session) if reset else client.breaker(session))
    if as_json:
        output.print_json(found)
        return
    pairs: list[tuple[str, str | Text]] = [("Session", found["session_id"]), ("Breaker", _breaker(found))]
    if found["state"] != "closed":
        pairs.append(("Next", f"compactd breaker {found['session_id']} --reset"))
    output.show(output.facts(pairs))


async def _looked_at(client: Client, session: str) -> tuple[Session, Context, Job | None]:
    """The session, what fills it, and the job whose result it begins with, if that is still known."""
    found = await client.session(session)
    try:
        newest = await client.job(found["live_job_id"]) if found["live_job_id"] else None
    except Refused:
        newest = None
    return found, await client.context(session), newest


def _session_facts(found: Session, newest: Job | None) -> list[tuple[str, str | Text]]:
    state = found["state"]
    marks = state["marks"]
    colour, words = _LEVELS[state["level"]]
    size = f"{number(state['tokens'])} of {number(marks['window'])} tokens  "
    return [
        ("Session", found["id"]),
        ("Model", found["model"]),
        ("Messages", f"{number(found['head_seq'])} stored"),
        ("Size", Text.assemble(size, (bar(state["tokens"], marks["window"], 20), colour))),
        ("State", Text(f"{words}; {state['percent_left']} % left", style=colour)),
        ("Automatic", f"compaction at {number(marks['auto_compact'])}, block at {number(marks['block'])} tokens"),
        ("Compacted", f"by job {found['live_job_id']}" if found["live_job_id"] else "not yet"),
        ("Breaker", _breaker(found["breaker"])),
        ("Next", _next_step(found, newest)),
    ]


def _next_step(found: Session, newest: Job | None) -> str:
    """What the session's state asks for. Compacting again what has not changed since would help nobody."""
    if newest is not None and newest["ended_at"] == found["updated_at"]:
        return f"compactd result {newest['id']}"
    if found["state"]["level"] != "ok":
        return f"compactd compact {found['id']} --wait"
    return f"nothing has to be done; compactd compact {found['id']} --wait makes it smaller before it must be"


def _breaker(found: Breaker) -> Text:
    if found["state"] == "closed":
        failures = found["failures"]
        return Text(f"closed, {failures} failures in a row" if failures else "closed", style="green")
    code = found["last_error_code"] or "unknown"
    since = output.moment(found["opened_at"])
    return Text(
        f"{found['state'].replace('_', ' ')} since {since} UTC after {found['failures']} failures ({code})", "red"
    )
