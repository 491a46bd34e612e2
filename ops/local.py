"""The local stack: `python -m ops.local up` keeps it running, `python -m ops.local demo [FILE]` shows the main job.

Exit codes: 0 stopped when asked, 1 could not start, 2 wrong usage, 130 interrupted; a demo that ran gives its own.
"""

from __future__ import annotations

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until main() listens: Ctrl-C while modules load needs no traceback

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from ops.embedded.errors import Interrupted, LocalError
from ops.embedded.launch import follow_parent
from ops.embedded.processes import Command, Process
from ops.embedded.waiting import StopRequest
from ops.stack.folder import StackFolder, StackState
from ops.stack.parent import follow_interrupts
from ops.stack.settings import StackSettings
from ops.stack.stack import Stack, StackCommands

INTERRUPTED = 130  # what shells report for Ctrl-C
Report = Callable[[str], None]


def reporter(stream: TextIO) -> Report:
    """Prints line by line; a reader that went away does not end the stack."""

    def report(line: str) -> None:
        try:
            print(line, file=stream, flush=True)
        except OSError:  # a closed pipe, a terminal that hung up
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

    return report


@contextlib.contextmanager
def running(
    settings: StackSettings, folder: StackFolder, stop: StopRequest, report: Report, commands: StackCommands
) -> Iterator[tuple[Stack, StackState]]:
    """A started stack, stopped at the end whatever happens. Raises LocalError or Interrupted."""
    stack = Stack(settings, folder, stop, report, commands)
    began = time.monotonic()
    report(f"Starting Postgres, Valkey, API and worker in {folder.path} ...")
    try:
        state = stack.start()
    except BaseException:
        stack.stop()
        raise
    report(f"Ready after {time.monotonic() - began:.1f} s.")
    try:
        yield stack, state
    finally:
        report("Stopping ...")
        stack.stop()
        report("Stopped.")


def up(environ: Mapping[str, str], stop: StopRequest, commands: StackCommands) -> int:
    """Runs the stack until somebody asks to stop."""
    report = reporter(sys.stdout)
    settings = StackSettings.read(environ)
    with (
        StackFolder(settings.folder) as folder,
        running(settings, folder, stop, report, commands) as (stack, state),
    ):
        report(f"\n  API        {state.url}  (documentation: {state.url}/docs)\n  API key    {state.api_key}")
        report(f"  Dashboard  {state.url}/dashboard  (sign in with the key)")
        report(f"  Postgres   {state.database_url}\n  Valkey     {state.redis_url}")
        report(f"  all of it  {folder.state_file}\n  logs       {folder.path / 'log'}\n")
        report("Ctrl-C stops it; running jobs go back to the queue. A second Ctrl-C stops it at once.\n")
        stack.watch(lambda: False)
    return 0


def demo(file: str | None, environ: Mapping[str, str], stop: StopRequest, commands: StackCommands) -> int:
    """Shows the main job on the stack that runs in the folder, or on one that is started for it and stopped again."""
    report = reporter(sys.stderr)
    path = Path(file).expanduser() if file else None
    if path is not None and path.is_dir():
        raise LocalError(f"{path} is a folder. Name a transcript file, or import the folder with `compactd import`.")
    if path is not None and not path.exists():
        raise LocalError(f"There is no file {path}.")
    settings = StackSettings.read(environ, default_port=0)
    folder = StackFolder(settings.folder)
    if not folder.take():
        return _demo_elsewhere(folder, path, settings, stop, commands)
    with folder, running(settings, folder, stop, report, commands) as (stack, state):
        process = _start_demo(state, path, settings, commands, stack_stops=True)
        try:
            stack.watch(lambda: not process.is_alive)
            return _outcome(process, stop)
        finally:
            process.stop(stop)  # before the stack: an interrupted demo cancels its job while there is an API


def _demo_elsewhere(
    folder: StackFolder, path: Path | None, settings: StackSettings, stop: StopRequest, commands: StackCommands
) -> int:
    state = folder.read_state()
    if state is None:
        raise LocalError(f"A stack is just starting or stopping in {folder.path}. Try again in a moment.")
    reporter(sys.stderr)(f"Using the stack that runs in {folder.path}.")
    process = _start_demo(state, path, settings, commands, stack_stops=False)
    while process.is_alive and not stop.is_asked:
        time.sleep(0.05)  # short beside the demo, long beside a CPU
    return _outcome(process, stop)


def _start_demo(
    state: StackState, path: Path | None, settings: StackSettings, commands: StackCommands, *, stack_stops: bool
) -> Process:
    told = {"COMPACTD_URL": state.url, "COMPACTD_API_KEY": state.api_key, "COMPACTD_DEMO_STACK_STOPS": str(stack_stops)}
    environ = {**settings.environ, **told}
    arguments = (*commands.demo, *([str(path)] if path else []))
    return Process(Command(name="demo", arguments=arguments, folder=Path.cwd(), log=None, environ=environ))


def _outcome(process: Process, stop: StopRequest) -> int:
    process_ended = not process.is_alive
    process.stop(stop)
    code = process.returncode
    if not process_ended or code is None or code < 0:
        return INTERRUPTED
    return code


def main(arguments: Sequence[str], commands: StackCommands | None = None) -> int:
    """Runs one command. The stand-ins of tests come as `commands`."""
    parser = argparse.ArgumentParser(prog="python -m ops.local", description="The local stack of compactd.")
    parser.add_argument(
        "--with-parent", action="store_true", help="stop when the starting program is interrupted or dies (Linux)"
    )
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("up", help="start and keep running until SIGINT or SIGTERM")
    actions.add_parser("demo", help="run the main job and stop").add_argument("file", nargs="?", help="a transcript")
    options = parser.parse_args(arguments)
    parent = os.getppid()
    if options.with_parent:
        follow_parent(parent, signal.SIGTERM)
    os.umask(0o077)  # whatever we and our children write is private
    stop = StopRequest()
    stop.listen()
    if options.with_parent:
        follow_interrupts(parent, stop)
    try:
        if options.action == "up":
            return up(os.environ, stop, commands or StackCommands())
        return demo(options.file, os.environ, stop, commands or StackCommands())
    except Interrupted:
        return 0 if options.action == "up" else INTERRUPTED
    except LocalError as problem:
        if stop.is_asked:  # Ctrl-C reaches the helpers of a start too, and what they say of it is no news
            return 0 if options.action == "up" else INTERRUPTED
        print(problem, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
