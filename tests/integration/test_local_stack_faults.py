"""What the local stack does when it is stopped, killed, or loses one of its parts."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import psycopg
import pytest

from ops.embedded import nobody
from tests.integration.local_stack import LocalStack, eventually

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
    pytest.mark.chaos,
]

ROOT_MODES = ["namespace", "nobody"] if os.geteuid() == 0 else ["ourselves"]


def log(stack: LocalStack, name: str) -> str:
    """The log of one child."""
    return (stack.folder / "log" / f"{name}.log").read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with LocalStack(tmp_path / "local") as stack:
        state = stack.wait_ready()

        code, out, err = stack.end(number)

        assert (code, err) == (0, "")
        assert state["url"] in out
        assert state["api_key"] in out
        assert out.rstrip().endswith("Stopped.")
        assert stack.leftovers() == []
        assert not (stack.folder / "stack.json").exists()
        assert "database system is shut down" in log(stack, "postgres")


def test_an_echoed_signal_is_one_signal(tmp_path: Path) -> None:
    with LocalStack(tmp_path / "local") as stack:
        stack.wait_ready()
        stack.process.send_signal(signal.SIGTERM)

        code, _, _ = stack.end(signal.SIGTERM)

        assert code == 0
        assert "database system is shut down" in log(stack, "postgres")


def test_a_signal_during_the_start_leaves_nothing(tmp_path: Path) -> None:
    with LocalStack(tmp_path / "local", roles={"worker": "slow"}) as stack:
        eventually((stack.folder / "run" / "api.ready").exists)

        code, _, _ = stack.end(signal.SIGTERM)

        assert code == 0
        assert stack.leftovers() == []


@pytest.mark.parametrize("mode", ROOT_MODES)
def test_nothing_outlives_a_killed_supervisor_and_the_next_one_finds_all_data(tmp_path: Path, mode: str) -> None:
    with LocalStack(tmp_path / "local", COMPACTD_LOCAL_ROOT=mode) as first:
        before = first.wait_ready()
        with psycopg.connect(before["database_url"]) as connection:
            connection.execute("create table kept as select 42 as answer")
        first.end(signal.SIGKILL)
        eventually(lambda: first.leftovers() == [])

    with LocalStack(tmp_path / "local", COMPACTD_LOCAL_ROOT=mode) as second:
        after = second.wait_ready()
        assert after["api_key"] == before["api_key"]
        with psycopg.connect(after["database_url"]) as connection:
            assert connection.execute("select answer from kept").fetchone() == (42,)
        code, _, _ = second.end(signal.SIGTERM)

        assert code == 0
        assert second.leftovers() == []
    nobody.remove_folder(tmp_path / "local" / "postgres" / "data")  # may lie outside of tmp_path


def test_the_next_start_waits_for_servers_that_are_just_leaving(tmp_path: Path) -> None:
    with LocalStack(tmp_path / "local") as first:
        first.wait_ready()
        first.process.kill()
        with LocalStack(tmp_path / "local") as second:
            second.wait_ready()


def test_a_pid_file_of_another_life_stops_nobody(tmp_path: Path) -> None:
    with LocalStack(tmp_path / "local") as first:
        first.wait_ready()
        first.end(signal.SIGTERM)
    stale = tmp_path / "local" / "postgres" / "data" / "postmaster.pid"
    stale.resolve().write_text(f"{os.getpid()}\n")  # the number lives, but it is a test

    with LocalStack(tmp_path / "local") as second:
        second.wait_ready()


@pytest.mark.parametrize("part", ["api", "worker", "postgres", "valkey"])
def test_a_killed_part_comes_back_and_stack_json_says_so(tmp_path: Path, part: str) -> None:
    with LocalStack(tmp_path / "local") as stack:
        before = stack.wait_ready()
        os.kill(before["pids"][part], signal.SIGKILL)
        eventually(lambda: stack.state["pids"][part] != before["pids"][part])
        after = stack.state

        assert {**after["pids"], part: 0} == {**before["pids"], part: 0}
        assert (after["url"], after["database_url"]) == (before["url"], before["database_url"])
        eventually(lambda: answers(after["database_url"]))
        code, out, _ = stack.end(signal.SIGTERM)

        assert code == 0
        assert f"{part} (pid {before['pids'][part]}) ended" in out


def answers(database_url: str) -> bool:
    """Whether the database takes connections."""
    try:
        with psycopg.connect(database_url) as connection:
            return connection.execute("select 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


@pytest.mark.skipif(shutil.which("make") is None, reason="it is about make")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_make_alone_stops_everything_in_order(tmp_path: Path, number: signal.Signals) -> None:
    """Make passes SIGTERM on to what it runs, but waits silently after a SIGINT that did not come from a terminal."""
    with LocalStack(tmp_path / "local", "--with-parent", "up", in_make=True) as stack:
        state = stack.wait_ready()
        assert state["pids"]["supervisor"] != stack.process.pid

        _, out, _ = stack.end(number)

        eventually(lambda: stack.leftovers() == [])
        assert out.rstrip().endswith("Stopped.")
        assert "database system is shut down" in log(stack, "postgres")


def test_who_started_the_supervisor_takes_it_along(tmp_path: Path) -> None:
    with LocalStack(tmp_path / "local", "--with-parent", "up", in_shell=True) as stack:
        state = stack.wait_ready()

        stack.process.kill()  # the shell, not the supervisor

        assert state["pids"]["supervisor"] != stack.process.pid
        eventually(lambda: stack.leftovers() == [])
