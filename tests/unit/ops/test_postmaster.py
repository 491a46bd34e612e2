"""Postgres's pid file tells whether its server is ready; one of another life stops nobody."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ops.embedded import postmaster

READY = "4242\n/data\n1764500000\n5433\n\n127.0.0.1\n 12345 1\nready   \n"


@pytest.mark.parametrize(
    ("text", "pid", "ready"),
    [
        (READY, 4242, True),
        (READY, 4243, False),
        (READY.replace("ready   ", "starting"), 4242, False),
        ("4242\n/data\n", 4242, False),
        ("", 4242, False),
    ],
    ids=["ready", "another server's", "starting", "half written", "empty"],
)
def test_a_server_is_ready_when_its_own_file_says_so(tmp_path: Path, text: str, pid: int, ready: bool) -> None:
    (tmp_path / "postmaster.pid").write_text(text)

    assert postmaster.is_ready(tmp_path, pid) is ready


def test_without_a_file_nothing_is_ready_and_nothing_to_settle(tmp_path: Path) -> None:
    assert not postmaster.is_ready(tmp_path, 4242)
    postmaster.settle(tmp_path)


def test_a_file_that_names_a_process_of_somebody_else_is_removed(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text(READY.replace("4242", str(os.getpid())))

    postmaster.settle(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_this_process_is_no_server_on_that_data(tmp_path: Path) -> None:
    assert not postmaster.is_server(os.getpid(), tmp_path)
