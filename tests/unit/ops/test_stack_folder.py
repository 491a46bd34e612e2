"""The stack's folder belongs to one supervisor at a time and keeps its key."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from ops.embedded.errors import LocalError
from ops.stack.folder import StackFolder, StackState, new_api_key

STATE = StackState(
    url="http://127.0.0.1:1",
    api_key="ck_a_b",
    database_url="postgresql://",
    redis_url="redis://",
    pids={"supervisor": 7, "worker": [8, 9]},
)


def test_a_folder_that_somebody_has_is_refused_with_who_it_is(tmp_path: Path) -> None:
    with StackFolder(tmp_path / "local") as folder:
        folder.write_state(STATE)

        with pytest.raises(LocalError, match=r"pid 7, http://127\.0\.0\.1:1(.*)COMPACTD_LOCAL_DIR"):
            StackFolder(tmp_path / "local").__enter__()


def test_a_folder_that_was_left_can_be_taken_again(tmp_path: Path) -> None:
    for _ in range(2):
        with StackFolder(tmp_path / "local") as folder:
            folder.write_state(STATE)
            assert folder.read_state() == STATE

        assert folder.read_state() is None


def test_what_a_killed_supervisor_told_is_forgotten(tmp_path: Path) -> None:
    folder = StackFolder(tmp_path)
    folder.write_state(STATE)

    assert folder.take()
    assert folder.read_state() is None
    folder.leave()


def test_a_folder_that_cannot_be_made_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(LocalError, match="COMPACTD_LOCAL_DIR"):
        StackFolder(tmp_path / "file" / "local").take()


def test_stack_json_is_private_and_plain(tmp_path: Path) -> None:
    folder = StackFolder(tmp_path)
    folder.write_state(STATE)

    assert stat.S_IMODE(folder.state_file.stat().st_mode) == 0o600
    assert json.loads(folder.state_file.read_text())["pids"] == {"supervisor": 7, "worker": [8, 9]}


def test_the_key_is_made_once_and_private(tmp_path: Path) -> None:
    key = StackFolder(tmp_path).api_key()

    assert StackFolder(tmp_path).api_key() == key
    assert stat.S_IMODE((tmp_path / "api_key").stat().st_mode) == 0o600


def test_a_key_is_a_short_name_and_256_random_bits() -> None:
    keys = {new_api_key() for _ in range(100)}

    assert len(keys) == 100
    assert all(re.fullmatch(r"ck_[a-z0-9]{8}_[A-Za-z0-9_-]{43}", key) for key in keys)
