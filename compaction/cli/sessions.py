"""Commands about sessions: session, breaker."""

from __future__ import annotations

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


def session(session: SessionArgument, *, as_json: JsonOption = False) -> None:
    """Show how a session stands and what fills its window."""
    found, filled, newest = run(lambda client: _looked_at(client, session))
    if as_json:
        output.print_json({**found, "context": filled})
    else:
        output.show(output.facts(_session_facts(found, newest)), *context_chart(filled))


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
