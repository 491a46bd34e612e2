"""A supervisor in a process of its own, with stand-ins for API and worker: what the tests of the local stack drive."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = str(Path(__file__).with_name("stand_in.py"))
PATIENCE_SECONDS = 60.0  # a busy machine; nothing here is about speed

RUN = """
import sys
from ops.local import main
from ops.stack.stack import StackCommands
roles = dict(item.split("=") for item in sys.argv[1].split(","))
commands = StackCommands(**{name: (sys.executable, sys.argv[2], role) for name, role in roles.items()})
sys.exit(main(sys.argv[3:], commands))
"""
MAKE_RULE = 'stack:; @eval "exec $$COMMAND"'  # as the Makefile starts it


# Whoever started the tests in the background may have had SIGINT ignored, and make would keep that.
HEARING = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])"


class LocalStack:
    """`python -m ops.local` on a folder, with stand-ins unless `real`."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        roles: dict[str, str] | None = None,
        in_shell: bool = False,
        in_make: bool = False,
        real: bool = False,
        **environ: str,
    ) -> None:
        self.folder = folder
        self._earlier = self._read()
        played = {"api": "api", "worker": "worker", "migrate": "nothing", "demo": "demo"} | (roles or {})
        given = ",".join(f"{name}={role}" for name, role in played.items())
        program = ["-m", "ops.local"] if real else ["-c", RUN, given, STAND_IN]
        command = [sys.executable, *program, *(arguments or ("up",))]
        shell = ["sh", "-c", '"$@"; exit $?', "sh"] if in_shell else []  # a parent between us, as make is
        environ = inherited() | {"COMPACTD_LOCAL_DIR": str(folder), "COMPACTD_PORT": "0"} | environ
        if in_make:
            make = [sys.executable, "-c", HEARING, "make", "--eval", MAKE_RULE, "stack"]
            command, environ["COMMAND"] = make, shlex.join(command)
        self.process = subprocess.Popen(
            [*shell, *command],
            cwd=folder.parent if in_make else ROOT,
            env=environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def state(self) -> dict[str, Any]:
        """stack.json."""
        found: dict[str, Any] = json.loads((self.folder / "stack.json").read_text())
        return found

    def wait_ready(self) -> dict[str, Any]:
        """stack.json as soon as this start has written it (an earlier one may have left its own)."""
        earlier = self._earlier
        eventually(lambda: self._read() not in (None, earlier) or self.process.poll() is not None)
        assert self.process.poll() is None, self.end()
        return self.state

    def _read(self) -> str | None:
        try:
            return (self.folder / "stack.json").read_text()
        except FileNotFoundError:
            return None

    def end(self, number: signal.Signals | None = None) -> tuple[int, str, str]:
        """Exit code and both outputs, after a signal if one is given."""
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, out, err

    def leftovers(self) -> list[str]:
        """The processes that work in the folder or were told about it, the supervisor left out."""
        return [who for who in processes_about(self.folder) if not who.startswith(f"{self.process.pid} ")]

    def __enter__(self) -> Self:
        """The stack, starting."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends what a test left running."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def inherited() -> dict[str, str]:
    """Our environment without what would change the product's behaviour."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "COMPACTD_"))}


def processes_about(folder: Path) -> list[str]:
    """`pid command` of each process whose working folder, arguments or environment name the folder (Linux)."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            about = [os.fsencode((process / "cwd").readlink()), (process / "cmdline").read_bytes()]
            about.append((process / "environ").read_bytes())
        except OSError:  # ended meanwhile, or somebody else's
            continue
        if int(process.name) != os.getpid() and any(os.fsencode(folder) in text for text in about):
            found.append(f"{process.name} {about[1].replace(bytes(1), b' ').decode(errors='replace')}")
    return found


def eventually(check: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Waits until something is true; the limit is for hanging tests only."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
