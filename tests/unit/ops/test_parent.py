"""Whether another process is in its handler of a signal is seen from outside."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from ops.stack.parent import is_in_handler

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

BLOCKING = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [{}]); print('ready', flush=True); input()"


@pytest.mark.parametrize(
    ("blocked", "found"),
    [("signal.SIGINT", True), ("signal.SIGTERM", False), ("", False)],
    ids=["it", "another", "none"],
)
def test_a_blocked_signal_shows(blocked: str, found: bool) -> None:
    command = [sys.executable, "-c", BLOCKING.format(blocked)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert is_in_handler(process.pid, signal.SIGINT) is found
        process.communicate("\n")


def test_a_process_that_is_gone_handles_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert not is_in_handler(process.pid, signal.SIGINT)
