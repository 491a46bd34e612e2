"""A child process ends with its parent, stops politely, and is killed when it does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ops.embedded.errors import Interrupted, LocalError
from ops.embedded.processes import Command, Process, run_to_end
from ops.embedded.waiting import StopRequest, wait_until

ROOT = Path(__file__).resolve().parents[3]
IGNORES = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"
COUNTS = (
    "import signal, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: print('asked', flush=True))\n"
    "print('on', flush=True)\n"
    "while True: time.sleep(1)"
)


def command(folder: Path, program: str, *, stop_seconds: float = 30.0) -> Command:
    """Python on a small program, with its log in the folder."""
    return Command(
        name="child",
        arguments=(sys.executable, "-c", program),
        folder=folder,
        log=folder / "child.log",
        stop_seconds=stop_seconds,
    )


def started(what: Command) -> Process:
    """A child that has written its first line."""
    child = Process(what)
    log = what.log
    assert log is not None
    assert wait_until(lambda: log.exists() and "on" in log.read_text(), 30.0)
    return child


def test_a_child_ends_when_it_is_asked(tmp_path: Path) -> None:
    child = Process(command(tmp_path, "import time; time.sleep(60)"))

    assert child.stop()
    assert child.returncode == -signal.SIGTERM


def test_a_child_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    child = started(command(tmp_path, IGNORES, stop_seconds=0.05))

    assert not child.stop()
    assert child.returncode == -signal.SIGKILL


def test_who_asks_twice_does_not_wait_for_the_child(tmp_path: Path) -> None:
    child = started(command(tmp_path, IGNORES))
    stop = StopRequest()
    stop.is_asked = stop.is_urgent = True

    assert not child.stop(stop)


def test_a_child_is_asked_once_however_often_we_say_so(tmp_path: Path) -> None:
    child = started(command(tmp_path, COUNTS, stop_seconds=0.2))
    child.ask_to_stop()
    child.ask_to_stop()
    child.stop()

    assert (tmp_path / "child.log").read_text().count("asked") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children that their parent died")
def test_a_child_dies_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    os.kill(child, 0)

    parent.kill()
    parent.communicate()

    assert wait_until(lambda: not Path(f"/proc/{child}/exe").exists(), 30.0)


PARENT = """
import sys, time
from pathlib import Path
from ops.embedded.processes import Command, Process
sleep = (sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")
child = Process(Command(name="child", arguments=sleep, folder=Path(sys.argv[1]), log=Path(sys.argv[1]) / "log"))
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_command_that_must_succeed_says_why_it_did_not(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"child failed:\n    the reason"):
        run_to_end(command(tmp_path, "raise SystemExit('the reason')"), 30.0)


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="child did not end within 0 s"):
        run_to_end(command(tmp_path, "import time; time.sleep(60)"), 0.0)


def test_a_command_is_ended_when_somebody_asks_to_stop(tmp_path: Path) -> None:
    stop = StopRequest()
    stop.is_asked = True

    with pytest.raises(Interrupted):
        run_to_end(command(tmp_path, "import time; time.sleep(60)"), 30.0, stop)


def test_a_signal_is_noted_and_its_echo_is_not_a_second_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([100.0, 100.2, 101.5])
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    stop = StopRequest()

    states = []
    for _ in range(3):
        stop._note(signal.SIGINT, None)
        states.append((stop.is_asked, stop.is_urgent))

    assert states == [(True, False), (True, False), (True, True)]
