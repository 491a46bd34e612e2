"""The program `compactd`: its commands, put together. Exit codes stand in `compaction.cli.failures`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from compaction import __version__
from compaction.cli import bulk, demo, doctor, jobs, local, results, sessions, transfers

EXIT_CODES = (
    "Exit codes: 0 done, 1 the job failed, 2 wrong usage, 3 API not reachable, 4 not found, "
    "5 key not allowed, 6 refused, 7 not ended in time, 8 the doctor found something, 9 the job has no result."
)

app = typer.Typer(
    name="compactd",
    help="Compact the conversations of LLM agents. Finds the API by COMPACTD_URL and COMPACTD_API_KEY, "
    "or the local stack that `make up` runs.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("demo")(demo.demo)
app.command("import")(transfers.import_)
for command in (jobs.compact, jobs.status, jobs.wait, results.result, jobs.jobs, jobs.retry, jobs.cancel):
    app.command(command.__name__)(command)
app.command("session")(sessions.session)
app.command("breaker")(sessions.breaker)
app.command("doctor")(doctor.doctor)
app.command("env")(local.env)
app.command("sample")(local.sample)
app.add_typer(bulk.app, name="bulk")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        sys.stdout.write(f"compactd {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the program itself."""
    del version


def main() -> None:
    """Runs the program."""
    app()


if __name__ == "__main__":
    main()
