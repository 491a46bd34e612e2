"""Logs of children are private, bounded, and shown by their end."""

from __future__ import annotations

import stat
from pathlib import Path

from ops.embedded.logs import bound_log, open_log, tail


def test_a_log_is_private_and_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "log" / "api.log"
    for line in (b"one\n", b"two\n"):
        with open_log(path) as log:
            log.write(line)

    assert path.read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_over_its_limit_moves_aside_while_the_child_goes_on_writing(tmp_path: Path) -> None:
    path = tmp_path / "api.log"
    with open_log(path) as log:
        log.write(b"x" * 11)
        log.flush()

        assert bound_log(path, limit_bytes=10)
        log.write(b"new")

    assert (tmp_path / "api.log.1").read_bytes() == b"x" * 11
    assert path.read_bytes() == b"new"


def test_a_log_within_its_limit_stays(tmp_path: Path) -> None:
    path = tmp_path / "api.log"
    path.write_bytes(b"x" * 10)

    assert not bound_log(path, limit_bytes=10)
    assert not bound_log(tmp_path / "missing.log")


def test_the_end_of_a_log_is_shown_indented(tmp_path: Path) -> None:
    path = tmp_path / "api.log"
    path.write_text("".join(f"line {number}\n" for number in range(2_000)))

    assert tail(path, lines=2) == "    line 1998\n    line 1999"
    assert tail(tmp_path / "missing.log") == ""
